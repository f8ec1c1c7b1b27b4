"""Procedures: a mistake in a template, a name or a picture is found when the file is loaded."""

from __future__ import annotations

from textwrap import indent

import pytest

from registry.registry import Registry
from registry.schema import Repair, Step
from registry.templates import read_condition, read_template

TOOLS = """\
tools:
  ocr: {description: d, backend: {type: python, target: t}}
  zoom: {description: d, aliases: [crop], backend: {type: python, target: t}}
"""


def skill(procedure: str) -> str:
    head = "skills:\n  s:\n    description: d\n    subskills:\n      a:\n        description: d\n"
    return TOOLS + head + "        procedure:\n" + indent(procedure, " " * 10) + "\n"


def test_a_procedure_with_tools_conditions_pictures_and_repair_loads(write):
    path = write(
        skill("""\
steps:
  - {tool: OCR, save: ocr, args: {query: "{{ question }}"}}
  - {tool: crop, save: close, when: ocr.text and ocr.data | length > 2}
  - ask: |
      Task: read
      Question: {{ question }}
      OCR: {{ ocr.json }}
      {% for number in range(2) %}{{ loop.index }}{% endfor %}
    images: [image, close]
    system: You are {{ skill }}, {{ subskill }}.
    save: draft
repair:
  when: not draft.text.isdigit()
  rounds: 2
  steps:
    - {ask: "Only the number: {{ draft }}", images: [], save: draft}
answer: "{{ draft.text }}"
""")
    )
    procedure = Registry.load(path).skill("s").subskills[0].procedure
    assert [step.tool for step in procedure.steps] == ["OCR", "crop", None]
    assert procedure.steps[2].images == ("image", "close")
    assert procedure.steps[2].ask is not None and procedure.steps[2].ask.startswith("Task: read\nQuestion:")
    assert procedure.repair is not None and procedure.repair.rounds == 2


@pytest.mark.parametrize(
    ("procedure", "fault"),
    [
        ("steps: [{tool: orc, save: x}, {ask: q}]", "steps[0].tool: no tool 'orc' (did you mean 'ocr'?)"),
        ('steps: [{ask: "{{ question "}]', "steps[0].ask: unexpected end of template"),
        ('steps: [{ask: "{{ question | shout }}"}]', "steps[0].ask: No filter named 'shout'"),
        ("steps: [{ask: \"{% include 'x' %}\"}]", "steps[0].ask: a template can't include"),
        ('steps: [{ask: "{{ questoin }}"}]', "(did you mean 'question'?)"),
        ('steps: [{ask: "{{ x }}", save: x}]', "steps[0].ask: nothing is saved as 'x' before this"),
        (
            'steps: [{tool: ocr, save: x}, {ask: "{{ x.txt }}"}]',
            "steps[1].ask: 'x' has no 'txt' (there is data, json, text) (did you mean 'text'?)",
        ),
        ("steps: [{ask: q, when: question ==}]", "steps[0].when: unexpected 'end of template'"),
        ('steps: [{ask: q, when: "{{ question }}"}]', "steps[0].when: a condition is a bare expression"),
        ("steps: [{ask: q, when: ocr.text}]", "steps[0].when: nothing is saved as 'ocr' before this"),
        ("steps: [{ask: q, images: [zoom]}]", "steps[0].images[0]: no picture 'zoom' here; there is image"),
        (
            "steps: [{ask: q, save: d}, {ask: q, images: [d]}]",
            "steps[1].images[0]: no picture 'd' here; there is image",
        ),
        ("steps: [{ask: q, save: my-text}]", "steps[0].save: 'my-text' is not a plain name"),
        ("steps: [{ask: q, save: none}]", "steps[0].save: 'none' is not a plain name"),
        ("steps: [{ask: q, save: question}]", "steps[0].save: 'question' is given already"),
        ("steps: [{ask: q, tool: ocr}]", "steps[0]: a step has exactly one of 'tool' and 'ask'"),
        ("steps: [{when: question}]", "steps[0]: a step has exactly one of 'tool' and 'ask'"),
        ("steps: [{ask: q, args: {a: b}}]", "steps[0]: 'args' belong to a tool step"),
        ("steps: [{tool: ocr, system: b}, {ask: q}]", "steps[0]: 'system' belongs to an ask step"),
        (
            "steps: [{tool: ocr, args: {a b: c}}, {ask: q}]",
            "steps[0].args: the argument 'a b' is not a plain",
        ),
        ("steps: [{tool: ocr, args: {a: '{{ b }}'}}, {ask: q}]", "steps[0].args.a: nothing is saved as 'b'"),
        ("steps: [{ask: ' '}]", "steps[0].ask: is empty"),
        ("steps: [{aks: q}]", "steps[0].aks: unknown key 'aks'"),
        ("steps: []", "steps: must have at least one entry"),
        ("steps: [{tool: ocr, save: x}]", "procedure: needs an 'ask' step or an 'answer'"),
        ("{steps: [{ask: q}], answer: '{{ draft }}'}", "answer: nothing is saved as 'draft' before this"),
        (
            "{steps: [{ask: q}], repair: {when: 'true', rounds: 6, steps: [{ask: q}]}}",
            "repair.rounds: must be less than or equal to 5, not '6'",
        ),
        (
            "{steps: [{ask: q}], repair: {when: draft, rounds: 1, steps: [{ask: q, save: draft}]}}",
            "repair.when: nothing is saved as 'draft' before this",
        ),
        (
            "{steps: [{ask: q}], repair: {when: 'true', rounds: 1, steps: [{tool: ocrr}]}}",
            "repair.steps[0].tool: no tool 'ocrr' (did you mean 'ocr'?)",
        ),
    ],
)
def test_a_mistake_in_a_procedure_is_found_at_load(write, faults_of, procedure, fault):
    found = faults_of(write(skill(procedure)))
    assert len([line for line in found if fault in line]) == 1, found
    assert all(line.startswith("registry.yaml:") for line in found)


def test_the_fault_names_the_line_of_the_step_and_of_the_template(write, faults_of):
    path = write(
        skill("steps:\n  - {tool: ocr, save: ocr}\n  - ask: |\n      one\n      {{ two\n      three")
    )
    (fault,) = faults_of(path)
    assert fault.startswith("registry.yaml:13: skill 's', subskills.a.procedure.steps[1].ask: ")
    assert fault.endswith("of the template)")


def test_subskill_names_are_unique_with_their_aliases(write, faults_of):
    body = "{description: d, procedure: {steps: [{ask: q}]}}"
    aliased = body.replace("description: d", "description: d, aliases: [Bar]")
    path = write(
        f"skills:\n  s:\n    description: d\n    subskills:\n      bar: {body}\n      Pie: {aliased}\n"
        f"      PIE_: {body}\n"
    )
    assert faults_of(path) == [
        "registry.yaml:6: skill 's', subskills.Pie.aliases[0]: the name 'Bar' already stands for "
        "the subskill 'bar'",
        "registry.yaml:7: skill 's', subskills.PIE_: the name 'PIE_' already stands for the subskill 'Pie'",
    ]


def test_the_default_may_be_an_alias_in_any_spelling(write):
    body = "{description: d, aliases: [Bar Charts], procedure: {steps: [{ask: q}]}}"
    other = "{description: d, procedure: {steps: [{ask: q}]}}"
    path = write(
        f"skills:\n  s:\n    description: d\n    default: bar-charts\n"
        f"    subskills:\n      pie: {other}\n      bar: {body}\n"
    )
    assert Registry.load(path).skill("s").default_subskill().name == "bar"


def test_a_skill_needs_subskills(write, faults_of):
    path = write("skills:\n  s: {description: d, subskills: {}}\n  t: {description: d, subskills: [a]}\n")
    assert faults_of(path) == [
        "registry.yaml:2: skill 's', subskills: must have at least one entry",
        "registry.yaml:3: skill 't', subskills: must map names to bodies",
        "registry.yaml:3: skill 't', subskills: must have at least one entry",
    ]


def test_repair_loops_are_bounded_in_python_too():
    with pytest.raises(ValueError, match="less than or equal to 5"):
        Repair(when="true", rounds=6, steps=(Step(ask="again"),))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("(" * 5000, "nested too deep"),
        ("-" * 3000 + "1", "nested too deep"),
        ("9" * 6000, "Exceeds the limit (4300 digits)"),
        ("x is odd_looking", "No test named 'odd_looking'"),
        ("a b", "chunk after expression"),
    ],
)
def test_absurd_conditions_are_faults_not_crashes(text: str, fault: str):
    assert (read_condition(text).fault or "").startswith(fault)


def test_nothing_is_computed_while_a_template_is_checked():
    assert read_condition("10 ** 10 ** 10").fault is None
    assert read_template("{{ 'x' * 10 ** 11 }}").fault is None
