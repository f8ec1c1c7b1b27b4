"""Several evaluations as one file: the schema of ``configs/eval/study_*.yaml``.

The one idea: a study adds nothing to what an evaluation can do. Each member is an ordinary evaluation, made of a base
configuration, the arms written here and a registry, in a folder of its own; what they have in common (rows, policies,
call cache) is written once.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from eval.arm import Arm, PolicySource
from eval.config import EvalConfig, load_eval_config
from eval.yaml_config import Strict, load_config
from registry.errors import UserFault
from registry.names import nearest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class MemberSettings(Strict):
    """One evaluation of a study."""

    about: str = ""
    """What it shows, in a sentence."""
    benchmarks: tuple[str, ...] = ()
    """One evaluation for each of these, in the folder ``<member>-<benchmark>``; none: the base's benchmark. A name,
    or a YAML file, looked for beside the study."""
    base: Path | None = None
    """Instead of the study's."""
    registry: tuple[Path, ...] | None = None
    """Instead of the study's."""
    spare: tuple[Path, ...] | None = None
    """Instead of the study's."""
    policies: dict[str, PolicySource] = Field(default_factory=dict)
    """Beside those of the base and the study."""
    arms: dict[str, Arm] = Field(min_length=1)
    """All of its arms; those of the base are left out."""
    set: dict[str, Any] = Field(default_factory=dict)
    """``dotted.key: value``, laid over the base and the study's."""
    optional: bool = False
    """Left out, and said so, where a checkpoint of it is not there or an API key is not set."""


class StudySettings(Strict):
    """A study. Paths in it start at the folder of its file; ``folder`` and what ``set`` holds at the current one."""

    title: str
    folder: Path
    """Each member writes into a folder of its name in this one; the summary is written here."""
    base: Path
    """The evaluation that members are made from."""
    registry: tuple[Path, ...] = ()
    """Registry files or folders; none: the embedded registry."""
    spare: tuple[Path, ...] = ()
    """Registry files whose parts only ablations use."""
    policies: dict[str, PolicySource] = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict)
    members: dict[str, MemberSettings] = Field(min_length=1)

    @field_validator("members")
    @classmethod
    def _folders(cls, value: dict[str, MemberSettings]) -> dict[str, MemberSettings]:
        for name in value:
            if not _NAME.fullmatch(name):
                raise ValueError(f"a member's name is a folder's: letters, digits, '.', '_' and '-', not {name!r}")
        return value


@dataclass(frozen=True)
class Member:
    """An evaluation that is ready to run."""

    name: str
    about: str
    config: EvalConfig
    registry: tuple[Path, ...]
    folder: Path
    optional: bool

    @property
    def missing(self) -> list[str]:
        """Checkpoint folders and API keys that are not there, of policies that an arm uses."""
        found = []
        for name, source in sorted(self.config.policies.items()):
            path = self.config.checkpoint(name)
            if path is not None and not (path / "config.json").is_file():
                found.append(f"no checkpoint in {os.path.normpath(path)}")
            if source.api_key_env and not os.environ.get(source.api_key_env):
                found.append(f"${source.api_key_env} is not set")
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Study:
    """A study that has been read; every member's configuration holds."""

    title: str
    folder: Path
    members: tuple[Member, ...]


def load_study(path: Path, overrides: Sequence[str] = (), only: Sequence[str] = ()) -> Study:
    """Read a study and each member's configuration.

    Args:
        overrides: ``key=value`` laid over every member; ``folder=PATH`` moves the study.
        only: names of members; none: all.

    Raises:
        UserFault: names every fault of the file, or the member whose configuration does not hold.
    """
    own = [item for item in overrides if item.partition("=")[0].strip() == "folder"]
    rest = [item for item in overrides if item not in own]
    settings = load_config(StudySettings, path, own)
    wanted = {
        (name, benchmark): f"{name}-{_stem(benchmark)}" if benchmark else name
        for name, member in settings.members.items()
        for benchmark in (member.benchmarks or (None,))
    }
    for name in only:
        if name not in settings.members and name not in wanted.values():
            near = nearest(name, [*settings.members, *wanted.values()], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(settings.members)}"
            raise UserFault(f"the study has no member {name!r}", where="--only", fix=hint)
    members = [
        _member(path, settings, name, benchmark, full, rest)
        for (name, benchmark), full in wanted.items()
        if not only or name in only or full in only
    ]
    return Study(settings.title, settings.folder, tuple(members))


def _member(
    path: Path, study: StudySettings, key: str, benchmark: str | None, name: str, overrides: Sequence[str]
) -> Member:
    member = study.members[key]
    registry = study.registry if member.registry is None else member.registry
    spare = study.spare if member.spare is None else member.spare
    policies = study.policies | member.policies
    laid_over: dict[str, Any] = {
        "report.title": f"{study.title}: {name}",
        **study.set,
        **member.set,
        **({"benchmark": _found(path, benchmark)} if benchmark else {}),
        **{f"policies.{policy}": _plain(source) for policy, source in policies.items()},
        "arms": {arm: _plain(settings) for arm, settings in member.arms.items()},
        "spare": [str(_beside(path, one)) for one in spare],
        "run": str(study.folder / name),
    }
    try:
        config = load_eval_config(
            _beside(path, member.base or study.base), [*map(_override, laid_over.items()), *overrides]
        )
    except UserFault as fault:
        raise UserFault(
            f"member {name!r}: {_brief(fault.what)}", where=fault.where or str(path), fix=fault.fix
        ) from None
    if config.policies:  # those of the base that no arm uses need not be there
        used = {arm.policy for arm in config.arms.values()}
        config = config.model_copy(update={"policies": {k: v for k, v in config.policies.items() if k in used}})
    return Member(
        name, member.about, config, tuple(_beside(path, one) for one in registry), config.run, member.optional
    )


def _override(item: tuple[str, Any]) -> str:
    return f"{item[0]}={json.dumps(item[1])}"


def _plain(settings: Strict) -> Mapping[str, Any]:
    return settings.model_dump(mode="json", exclude_unset=True)


def _is_file(benchmark: str) -> bool:
    return benchmark.endswith((".yaml", ".yml"))


def _stem(benchmark: str) -> str:
    """A benchmark's name, or that of its file."""
    return Path(benchmark).stem if _is_file(benchmark) else benchmark


def _found(study: Path, benchmark: str) -> str:
    return str(_beside(study, Path(benchmark))) if _is_file(benchmark) else benchmark


def _beside(path: Path, other: Path) -> Path:
    return Path(os.path.normpath(path.parent / other))


def _brief(text: str) -> str:
    """Faults without the long overrides that the study itself made."""
    lines = [line if len(line) <= 400 else f"{line[:160]} ... {line[-200:]}" for line in text.splitlines()]
    return "\n".join(lines)
