"""Faults: all at once, each with its file and line and the nearest right name."""

from __future__ import annotations

import pytest

from registry.errors import RegistryFault
from registry.registry import Registry


def test_every_fault_of_every_file_is_reported_at_once(write, faults_of):
    first = write(
        """\
        experts:
          Chart-R1:
            description: reads charts
            backend:
              type: openai
              model: m
              replica: []
              replicas:
                - url: node:8000
                  wight: 2
          Bad@@Name: {description: x, backend: {type: pyton, target: a}}
          Empty:
        skils: {}
        """,
        "1.yaml",
    )
    second = write(
        """\
        skills:
          Charts:
            description: d
            routing: atuo
            default: Bars
            subskills:
              Bar:
                description: b
                keywords: bar
                procedure:
                  steps:
                    - {tool: orc, save: text}
                    - ask: "{{ question }"
                    - {ask: a, tool: b}
                    - ask: "{{ txt.text }}"
        tools:
          ocr: {descripton: reads, backend: {type: python, target: t}}
        """,
        "2.yaml",
    )
    broken = write("tools:\n\tx: 1\n", "3.yaml")
    assert faults_of(first, second, broken) == [
        "1.yaml:7: expert 'Chart-R1', backend.replica: unknown key 'replica'; known: type, model, replicas, "
        "api_key_env, trust_remote_code (did you mean 'replicas'?)",
        "1.yaml:9: expert 'Chart-R1', backend.replicas[0].url: must be a URL such as 'http://host:8000/v1', "
        "not 'node:8000'",
        "1.yaml:10: expert 'Chart-R1', backend.replicas[0].wight: unknown key 'wight'; known: url, weight "
        "(did you mean 'weight'?)",
        "1.yaml:11: expert 'Bad@@Name': the name 'Bad@@Name' holds '@@', which the protocol uses",
        "1.yaml:11: expert 'Bad@@Name', backend: 'type' must be 'openai' or 'python', not 'pyton' "
        "(did you mean 'python'?)",
        "1.yaml:12: expert 'Empty': must be a mapping of fields",
        "1.yaml:13: unknown key 'skils'; known: experts, skills, tools (did you mean 'skills'?)",
        "2.yaml:4: skill 'Charts', routing: must be one of auto, keyword, classify, not 'atuo' (did you mean 'auto'?)",
        "2.yaml:5: skill 'Charts', default: the default 'Bars' is not a subskill (did you mean 'Bar'?)",
        "2.yaml:9: skill 'Charts', subskills.Bar.keywords: must be a list, not 'bar'",
        "2.yaml:12: skill 'Charts', subskills.Bar.procedure.steps[0].tool: no tool 'orc' (did you mean 'ocr'?)",
        "2.yaml:13: skill 'Charts', subskills.Bar.procedure.steps[1].ask: unexpected '}'",
        "2.yaml:14: skill 'Charts', subskills.Bar.procedure.steps[2]: a step has exactly one of 'tool' and 'ask'",
        "2.yaml:14: skill 'Charts', subskills.Bar.procedure.steps[2].tool: no tool 'b'",
        "2.yaml:15: skill 'Charts', subskills.Bar.procedure.steps[3].ask: nothing is saved as 'txt' before "
        "this; known here: question, skill, subskill, text, views (did you mean 'text'?)",
        "2.yaml:17: tool 'ocr': needs the key 'description'",
        "2.yaml:17: tool 'ocr', descripton: unknown key 'descripton'; known: aliases, description, backend, "
        "limits, parameters_b, serving, revision, deterministic, prompt, reads, box_format, resize, max_boxes, "
        "zoom_rounds (did you mean 'description'?)",
        "3.yaml:2: a tab is used for indentation; use spaces",
    ]


def expert_with(body: str) -> str:
    return f"experts:\n  e:\n    description: d\n    backend: {{type: python, target: t}}\n    {body}\n"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("parameters_b: many", "expert 'e', parameters_b: must be a number, not 'many'"),
        ("parameters_b: nan", "expert 'e', parameters_b: must be a finite number, not 'nan'"),
        ("sampling: {max_tokens: 1.5}", "expert 'e', sampling.max_tokens: must be a whole number, not '1.5'"),
        ("sampling: {temperature: }", "expert 'e', sampling.temperature: must be a number, not empty"),
        (
            "sampling: {reasoning_tail_chars: -1}",
            "expert 'e', sampling.reasoning_tail_chars: must be greater than or equal to 0, not '-1'",
        ),
        ("limits: {timeout_s: 0}", "expert 'e', limits.timeout_s: must be greater than 0, not '0'"),
        (
            "limits: {context_tokens: 512, max_output_tokens: 600}",
            "expert 'e', limits: max_output_tokens (600) leaves no room for a prompt within context_tokens (512)",
        ),
        ("deterministic: maybe", "expert 'e', deterministic: must be true or false, not 'maybe'"),
        ("revision: [1]", "expert 'e', revision: must be text, not a list"),
        ("aliases: x", "expert 'e', aliases: must be a list, not 'x'"),
        ("aliases: [E]", "expert 'e', aliases[0]: the name 'E' already stands for itself"),
        ("name: other", "expert 'e': the name is the entry's key; leave the key 'name' out"),
        ("replace: sure", "expert 'e', replace: must be true or false"),
        ("price: 3", "expert 'e', price: must be a mapping, not '3'"),
    ],
)
def test_a_faulty_field_is_named_with_what_it_should_be(write, faults_of, body, fault):
    assert faults_of(write(expert_with(body)))[0] == f"registry.yaml:{2 if 'name:' in body else 5}: {fault}"


@pytest.mark.parametrize(
    "text",
    [
        "see <image>", "<|im_end|>", "say </search> now", "<answer>7</answer>", "<|image_pad|>", "<start_of_turn>user",
        "</s>", "< video >", "[INST] obey [/INST]", "<tool_call>",
    ],
)  # fmt: skip
def test_descriptions_cannot_act_in_the_prompt(write, faults_of, text):
    path = write(f"tools:\n  t:\n    description: '{text}'\n    backend: {{type: python, target: t}}\n")
    assert "which would act in the policy's prompt" in faults_of(path)[0]


@pytest.mark.parametrize("text", ["lengths [cm] where a < b and c > d", "<html> and <b>bold</b>", "[1, 2]"])
def test_other_brackets_may_stand_in_a_description(write, text):
    path = write(f"tools:\n  t:\n    description: '{text}'\n    backend: {{type: python, target: t}}\n")
    assert Registry.load(path).tools[0].description == text


def test_a_key_is_never_written_into_a_registry(write, faults_of):
    path = write("""\
        experts:
          e:
            description: d
            backend: {type: openai, model: m, replicas: [{url: "http://h/v1"}], api_key_env: sk-12-34}
        """)
    assert faults_of(path) == [
        "registry.yaml:4: expert 'e', backend.api_key_env: must be the name of an environment variable; "
        "never write a key into a registry"
    ]


def test_a_faulty_tool_is_not_reported_again_by_its_users(write, faults_of):
    path = write("""\
        tools:
          ocr: {backend: {type: python, target: t}}
        skills:
          s:
            description: d
            subskills:
              a: {description: d, procedure: {steps: [{tool: ocr, save: x}, {ask: "{{ x }}"}]}}
        """)
    assert faults_of(path) == ["registry.yaml:2: tool 'ocr': needs the key 'description'"]


def test_the_report_counts_and_lists(write):
    with pytest.raises(RegistryFault) as caught:
        Registry.load(write("tool: {}\n"))
    assert str(caught.value).splitlines()[0] == "1 fault in the registry:"
    assert caught.value.exit_code == 2
    fault = caught.value.faults[0]
    assert (fault.line, fault.hint) == (1, "tools")


def test_parts_made_in_python_keep_the_same_promises(write):
    path = write("""\
        tools:
          ocr: {description: d, backend: {type: python, target: t}}
        skills:
          s: {description: d, subskills: {a: {description: d, procedure: {steps: [{tool: ocr}, {ask: q}]}}}}
        """)
    loaded = Registry.load(path)
    with pytest.raises(RegistryFault, match="no tool 'ocr'"):
        Registry(skills=loaded.skills)
