"""What an arm may call: the whole registry, a part of it, or one without its skills or experts.

The one idea: an ablation is another registry in front of the same pool. Where a skill (or expert) takes the place of
all others it takes over their names too, so that a policy which has learnt those names is served as one that reads
them in a prompt; the call is then carried out by what is really there, and the record names that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from eval.arm import BEST, Arm
from eval.config import EvalConfig
from eval.matrix import Matrix
from eval.plain import best_expert, plain_skill
from experts.images import Picture
from experts.outcome import Delegation, Outcome
from orchestrator.runner import Delegates
from registry.errors import UnknownName, UserFault
from registry.names import normalise
from registry.registry import Registry
from registry.schema import Expert, Skill

Part = TypeVar("Part", Expert, Skill)


@dataclass(frozen=True)
class Measured:
    """What was measured on validation rows: every pair, and every expert without a skill."""

    pairs: Matrix | None = None
    plain: Matrix | None = None


class Pools:
    """The registry of an evaluation and the registries of its arms.

    Raises UserFault, naming the arm, where one names what the registry and ``spare`` do not hold.
    """

    def __init__(self, config: EvalConfig, registry: Registry) -> None:
        self.registry = registry
        self._config = config
        self.spare = Registry.load(*config.spare) if config.spare else Registry()
        self.plain = plain_skill(registry, self.spare)
        for name, arm in config.arms.items():
            self._check(name, arm)

    @cached_property
    def everything(self) -> Registry:
        """All that any arm may call; what the expert pool is made of."""
        skills = (*self.registry.skills, *self.spare.skills)
        if self._uses_plain and self.plain not in skills:
            skills = (*skills, self.plain)
        return Registry(
            experts=(*self.registry.experts, *self.spare.experts),
            skills=skills,
            tools=(*self.registry.tools, *self.spare.tools),
        )

    def seen_by(self, name: str, measured: Measured) -> Registry:
        """The registry that an arm's policy, parser and prompt see."""
        arm = self._config.arms[name]
        if arm.kind in ("single_expert", "best_expert"):
            expert = self.single(name, measured)[0]
            skill = self.plain if arm.skill is None else self._skill(arm.skill)
            return self._of((self._expert(expert),), (skill,))
        experts, skills = self.registry.experts, self.registry.skills
        if arm.pool is not None:
            experts = _only(experts, arm.pool.experts, self.registry.expert)
            skills = _only(skills, arm.pool.skills, self.registry.skill)
        if arm.without in ("experts", "both"):
            assert arm.stand_in is not None
            experts = (_in_place_of(self._expert(self._stand_in(arm, measured)), experts),)
        if arm.without in ("skills", "both"):
            skills = (_in_place_of(self.plain, skills),)
        if experts is self.registry.experts and skills is self.registry.skills:
            return self.registry
        return self._of(experts, skills)

    def view(self, name: str, measured: Measured, pool: Delegates) -> View:
        """The pool as the arm sees it."""
        return View(self.seen_by(name, measured), pool)

    def single(self, name: str, measured: Measured) -> tuple[str, str]:
        """The pair of an arm that always asks one expert."""
        arm = self._config.arms[name]
        if arm.kind == "single_expert":
            assert arm.expert is not None
            return self._expert(arm.expert).name, (self.plain if arm.skill is None else self._skill(arm.skill)).name
        if measured.plain is None:
            raise ValueError(f"arm {name!r} needs the experts measured without a skill")
        return best_expert(measured.plain), self.plain.name

    def _of(self, experts: tuple[Expert, ...], skills: tuple[Skill, ...]) -> Registry:
        return Registry(experts=experts, skills=skills, tools=self.everything.tools)

    @property
    def _uses_plain(self) -> bool:
        return any(
            arm.without in ("skills", "both") or arm.needs_plain or (arm.kind == "single_expert" and arm.skill is None)
            for arm in self._config.arms.values()
        )

    def _stand_in(self, arm: Arm, measured: Measured) -> str:
        assert arm.stand_in is not None
        if arm.stand_in != BEST:
            return arm.stand_in
        matrix = measured.pairs if arm.without == "experts" else measured.plain
        if matrix is None:
            raise ValueError("the stand-in 'best' needs the validation rows to be measured first")
        return best_expert(matrix)

    def _expert(self, name: str) -> Expert:
        return self._found(name, self.registry.expert, self.spare.expert)

    def _skill(self, name: str) -> Skill:
        return self._found(name, self.registry.skill, self.spare.skill)

    def _found(self, name: str, first: Callable[[str], Part], second: Callable[[str], Part]) -> Part:
        try:
            return first(name)
        except UnknownName as unknown:
            try:
                return second(name)
            except UnknownName:
                raise unknown from None

    def _check(self, name: str, arm: Arm) -> None:
        try:
            if arm.pool is not None:
                for expert in arm.pool.experts or ():
                    self.registry.expert(expert)
                for skill in arm.pool.skills or ():
                    self.registry.skill(skill)
            for expert in (arm.expert, arm.stand_in):
                if expert not in (None, BEST):
                    self._expert(str(expert))
            if arm.skill is not None:
                self._skill(arm.skill)
        except UnknownName as unknown:
            near = f"did you mean {unknown.suggestions[0]!r}?" if unknown.suggestions else None
            raise UserFault(
                f"arm {name!r} names the {unknown.kind} {unknown.name!r}, which the registry does not hold",
                where=f"arms.{name}",
                fix=near or "see `maestro registry show`; parts for ablations alone belong into a file under 'spare'",
            ) from None


class View:
    """A pool as an arm sees it: its own registry in front, the shared pool behind."""

    def __init__(self, registry: Registry, pool: Delegates) -> None:
        self.registry = registry
        self._pool = pool

    async def delegate(
        self,
        expert: str,
        skill: str,
        question: str,
        pictures: Sequence[Picture],
        *,
        deadline_s: float | None = None,
    ) -> Delegation:
        """As ``ExpertPool.delegate``; names outside this registry are refused."""
        try:
            names = self.registry.expert(expert).name, self.registry.skill(skill).name
        except UnknownName as unknown:
            return Delegation(Outcome.INVALID_ACTION, str(unknown), expert, skill, error=str(unknown))
        return await self._pool.delegate(*names, question, pictures, deadline_s=deadline_s)


def _only(parts: tuple[Part, ...], names: Sequence[str] | None, find: Callable[[str], Part]) -> tuple[Part, ...]:
    """The named parts in the registry's order."""
    if names is None:
        return parts
    wanted = {find(name).name for name in names}
    return tuple(part for part in parts if part.name in wanted)


def _in_place_of(part: Part, others: Sequence[Part]) -> Part:
    """The part under its own name and those of all others."""
    names = [part.name, *part.aliases]
    known = {normalise(name) for name in names}
    for other in others:
        for name in (other.name, *other.aliases):
            if normalise(name) not in known:
                known.add(normalise(name))
                names.append(name)
    return part.model_copy(update={"aliases": tuple(names[1:])})
