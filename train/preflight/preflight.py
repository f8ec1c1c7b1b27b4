"""`Preflight`: everything that can be looked at before a run costs anything, in one list.

One idea: each check is a function that says what it found, or raises the fault; this file only keeps their order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from registry.errors import UserFault
from registry.names import nearest
from train.preflight import disk, experts, gpus, policy, ports, ray_cluster, rows, template, tokens, versions
from train.preflight.check import Check, NotYet
from train.preflight.site import Site

CHECKS: dict[str, Callable[[Site], str]] = {
    "versions": versions.check,
    "ray": ray_cluster.check,
    "gpus": gpus.check,
    "ports": ports.check,
    "disk": disk.check,
    "policy": policy.check,
    "template": template.check,
    "tokens": tokens.check,
    "rows": rows.check,
    "experts": experts.check,
}
_NEEDS_POLICY = ("template", "tokens")


@dataclass(frozen=True)
class Preflight:
    """All checks, in order."""

    checks: tuple[Check, ...]

    @property
    def faults(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.state == "fault")

    def refusal(self, where: str) -> UserFault:
        """The one message for a run that must not start."""
        lines = "\n".join(f"- {check.line()}" for check in self.faults)
        skipped = [check.name for check in self.checks if check.state == "skipped"]
        rest = f"\nnot looked at: {', '.join(skipped)}" if skipped else ""
        return UserFault(
            f"{len(self.faults)} of {len(self.checks)} checks before the start failed:\n{lines}{rest}",
            where=where,
            fix="mend what is named (`maestro train preflight CONFIG` looks again), or pass over a check: --skip NAME",
        )


def preflight(site: Site, skip: Collection[str] = ()) -> Preflight:
    """Run every check but those in `skip`. Raises UserFault for a name in `skip` that is none."""
    return Preflight(tuple(run_checks(site, skip)))


def run_checks(site: Site, skip: Collection[str] = ()) -> Iterator[Check]:
    """The same, one after the other, as they end."""
    for name in skip:
        if name not in CHECKS:
            near = nearest(name, CHECKS)
            raise UserFault(
                f"there is no check {name!r}",
                where="--skip",
                fix=f"did you mean {near[0]!r}?" if near else f"the checks: {', '.join(CHECKS)}",
            )
    states: dict[str, str] = {}
    for name, look in CHECKS.items():
        check = _check(name, look, site, skip, states.get("policy"))
        states[name] = check.state
        yield check


def _check(
    name: str, look: Callable[[Site], str], site: Site, skip: Collection[str], policy_state: str | None
) -> Check:
    if name in skip:
        return Check(name, "skipped", "asked for (--skip)")
    if name in _NEEDS_POLICY and policy_state == "fault":
        return Check(name, "skipped", "waits for the check `policy`")
    try:
        return Check(name, "ok", look(site))
    except NotYet as reason:
        return Check(name, "skipped", str(reason))
    except UserFault as fault:
        return Check.fault(name, fault)
