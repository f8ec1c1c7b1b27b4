"""How a served tool's reply is read: the fields that say so, and settings that nothing would read."""

from __future__ import annotations

import pytest

from registry.errors import RegistryFault
from registry.registry import Registry
from registry.schema import Resize, Tool

SERVED = 'backend: {type: openai, model: m, replicas: [{url: "http://h/v1"}]}'
PROGRAM = "backend: {type: python, target: t}"


def tool_with(backend: str, *fields: str) -> str:
    lines = ["tools:", "  eye:", "    description: d", f"    {backend}", *(f"    {field}" for field in fields)]
    return "\n".join(lines) + "\n"


def test_a_served_tool_says_how_its_reply_is_read(write):
    path = write(
        tool_with(
            SERVED,
            "reads: boxes",
            "box_format: resized",
            "resize: {factor: 32, min_pixels: 65536, max_pixels: 1003520}",
            "max_boxes: 30",
            'prompt: "Find {{ query }} in {{ width }} x {{ height }}."',
        )
    )
    tool = Registry.load(path).tool("eye")
    assert (tool.reads, tool.box_format, tool.max_boxes, tool.zoom_rounds) == ("boxes", "resized", 30, 1)
    assert tool.resize == Resize(factor=32, min_pixels=65_536, max_pixels=1_003_520)


def test_only_a_programs_results_are_kept_unasked(write):
    texts = {"a": PROGRAM, "b": SERVED}
    kept = {name: Registry.load(write(tool_with(text), f"{name}.yaml")).tool("eye") for name, text in texts.items()}
    assert (kept["a"].deterministic, kept["b"].deterministic) == (True, False)
    marked = Registry.load(write(tool_with(SERVED, "deterministic: true"), "c.yaml")).tool("eye")
    assert marked.deterministic


@pytest.mark.parametrize(
    ("backend", "fields", "faults"),
    [
        (
            PROGRAM,
            ["box_format: norm1000", "reads: text"],
            [
                "5: tool 'eye', box_format: says how a served model's reply is read; a program gives its result by "
                "itself",
                "6: tool 'eye', reads: says how a served model's reply is read; a program gives its result by itself",
            ],
        ),
        (
            SERVED,
            ["box_format: norm1000"],
            ["5: tool 'eye', box_format: means nothing where 'reads' is 'text'; it goes with boxes or zoom"],
        ),
        (
            SERVED,
            ["reads: boxes", "zoom_rounds: 2"],
            ["6: tool 'eye', zoom_rounds: means nothing where 'reads' is 'boxes'; it goes with zoom"],
        ),
        (
            SERVED,
            ["reads: zoom", "max_boxes: 2"],
            ["6: tool 'eye', max_boxes: means nothing where 'reads' is 'zoom'; it goes with boxes"],
        ),
        (
            SERVED,
            ["reads: boxes", "resize: {max_pixels: 1003520}"],
            ["6: tool 'eye', resize: means nothing where 'box_format' is 'pixel'; it goes with resized"],
        ),
        (
            SERVED,
            ['prompt: "{{ querry }}"'],
            ["5: tool 'eye', prompt: no value 'querry' here; known: height, query, width (did you mean 'query'?)"],
        ),
        (SERVED, ['prompt: "{{ width.text }}"'], ["5: tool 'eye', prompt: 'width' has no 'text'"]),
        (SERVED, ['prompt: "{{ query"'], None),
        (
            SERVED,
            ["reads: box"],
            ["5: tool 'eye', reads: must be one of text, boxes, zoom, not 'box' (did you mean 'boxes'?)"],
        ),
        (SERVED, ["zoom_rounds: 9"], ["5: tool 'eye', zoom_rounds: must be less than or equal to 5, not '9'"]),
        (
            SERVED,
            ["reads: boxes", "box_format: resized", "resize: {min_pixels: 5000, max_pixels: 4000}"],
            [
                "7: tool 'eye', resize: max_pixels (4000) is less than min_pixels (5000) or factor x factor (784)",
            ],
        ),
    ],
)
def test_a_setting_without_effect_or_meaning_is_refused_at_its_line(write, faults_of, backend, fields, faults):
    found = faults_of(write(tool_with(backend, *fields)))
    if faults is None:
        assert len(found) == 1 and found[0].startswith("registry.yaml:5: tool 'eye', prompt: ")
    else:
        assert found == [f"registry.yaml:{fault}" for fault in faults]


def test_a_tools_data_make_the_same_tool_again(write):
    for fields in ((), ("reads: boxes", "box_format: resized", "max_boxes: 30")):
        tool = Registry.load(write(tool_with(SERVED, *fields))).tool("eye")
        again = Tool.model_validate(tool.model_dump(mode="json"))
        assert Registry(tools=(again,)).tools == (tool,)


def test_a_registry_made_in_python_keeps_the_same_promises(write):
    served = Registry.load(write(tool_with(SERVED))).tool("eye")
    wrong = served.model_copy(update={"max_boxes": 3})
    with pytest.raises(RegistryFault, match="means nothing where 'reads' is 'text'"):
        Registry(tools=(wrong,))
