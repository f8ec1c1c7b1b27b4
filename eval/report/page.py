"""Results, cards and failures into one HTML file.

The one idea: the templates get plain values and escape all of them; style, script, plots and pictures are inlined, and
a content security policy in the page itself forbids any network access and any script but ours.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from eval.matrix import Matrix
from eval.report import heat
from eval.report.bundle import Bundle, json_in_html
from eval.report.cards import clean
from eval.report.choice import MOST_ERRORS
from eval.report.overview import arm_rows, arms_of, filters, group_tables, lead_of, subtitle, tiles
from eval.report.plots import Sized, accuracy_plot, drawn, latency_plot, samples_plot, scaling_plot
from eval.report.routing_view import matrix_view, routing_view
from eval.report.thumbnails import SIDE
from eval.whole_file import write_whole
from registry.errors import UserFault


@dataclass(frozen=True)
class Material:
    """Everything that the report of one evaluation shows."""

    title: str
    results: Mapping[str, Any]
    """The content of ``results.json``."""
    matrix: Matrix | None = None
    bundle: Bundle = field(default_factory=lambda: Bundle(0))
    total: int = 0
    """Trajectories in the journal."""
    pictures: Sequence[str | None] = ()
    """Data URLs of the bundle's pictures, in its order; ``None`` for those left out."""
    failures: Mapping[str, Any] | None = None
    """From ``failures_view``."""
    curves: bytes | None = None
    """PNG of the training curves."""
    sized: Sequence[Sized] = ()
    """Arms with skill pools of known size."""
    limit: int = 0
    """Bytes that cards and pictures were allowed to take."""
    unread: UserFault | None = None
    """Why the rows could not be read, so that there are no pictures."""


def render(material: Material) -> str:
    """The whole page as text."""
    data = {**material.bundle.to_json(), "pictures": list(material.pictures)}
    return render_page("report.html.jinja", _page(material), data)


def render_page(template: str, page: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """A page of this package's style; ``data`` is what its script reads."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_asset),
    )
    environment.filters["step"] = heat.step
    environment.filters["breakable"] = _breakable
    script = _asset("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(
        page=page,
        style=Markup(_asset("style.css") + heat.rules()),
        script=Markup(script),
        script_hash=Markup(f"sha256-{digest}"),
        data=Markup(json_in_html(data)),
    )


def write_report(material: Material, path: Path) -> Path:
    """Write atomically. Raises OSError."""
    return write_whole(path, render(material))


def _page(material: Material) -> dict[str, Any]:
    results, bundle = material.results, material.bundle
    arms, lead = arms_of(results), lead_of(results)
    data = bundle.to_json()
    return {
        "title": material.title,
        "subtitle": subtitle(results),
        "errors": results["errors"],
        "missing": results["expected"] - results["trajectories"],
        "tiles": tiles(results),
        "curves": None if material.curves is None else _png_url(material.curves),
        "arms": arm_rows(results),
        "scorer": {"official": None, "lenient": None, **(results.get("scorer") or {})},
        "skipped": results.get("skipped") or {},
        "groups": group_tables(results),
        "plots": drawn([
            accuracy_plot(arms, lead), latency_plot(arms, lead), samples_plot(arms), scaling_plot(material.sized),
        ]),
        "families": results["families"] if results.get("before") or results.get("after") else {},
        "matrix": None if material.matrix is None else matrix_view(material.matrix),
        "routing": routing_view(results, material.matrix),
        "failures": material.failures,
        "kept": len(bundle.cards),
        "total": material.total,
        "limit_mb": material.limit / 1e6,
        "full": bundle.full,
        "side": SIDE,
        "unread": None if material.unread is None else _told(material.unread),
        "pictures_missing": sum(url is None for url in material.pictures),
        "most_errors": MOST_ERRORS,
        "filters": {name: options for name, options in filters(data["cards"], data["strings"]).items() if options},
        "made_with": {"seed": results["seed"], **results["versions"]},
    }  # fmt: skip


def _told(fault: UserFault) -> dict[str, str]:
    return {"what": clean(fault.what), "where": clean(fault.where), "fix": clean(fault.fix)}


def _breakable(name: str) -> Markup:
    """A pair or a skill that may be broken where a reader expects it."""
    return Markup(str(escape(name)).replace("@@", "@@<wbr>").replace("_", "_<wbr>"))


def _png_url(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _asset(name: str) -> str:
    return files("eval.report").joinpath(name).read_text(encoding="utf-8")
