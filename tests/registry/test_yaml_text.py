"""Reading YAML: text stays text, nothing is guessed, nothing explodes."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from registry.errors import RegistryFault
from registry.registry import Registry

TRAPS = """\
    experts:
      off:
        description: no
        revision: 1.10
        backend: {type: python, target: yes, options: {version: 1.10, port: 08080, at: 1:30, note: on}}
    skills:
      on:
        description: 2024-01-01
        default: null_
        subskills:
          null_:
            description: ~tilde
            keywords: [no, yes, off, 1.10, 08080, 1:30, null, 0x1F, 1_000, .inf]
            procedure: {steps: [{ask: yes}]}
    """


def test_words_and_numbers_that_yaml_would_convert_stay_text(write):
    registry = Registry.load(write(TRAPS))
    skill, expert = registry.skill("on"), registry.expert("off")
    assert skill.name == "on"
    assert skill.description == "2024-01-01"
    assert skill.subskills[0].keywords == (
        *("no", "yes", "off", "1.10", "08080", "1:30", "null", "0x1F", "1_000", ".inf"),
    )
    assert skill.subskills[0].procedure.steps[0].ask == "yes"
    assert (expert.name, expert.description, expert.revision) == ("off", "no", "1.10")
    assert expert.backend.model_dump() == {
        "type": "python",
        "target": "yes",
        "options": {"version": "1.10", "port": "08080", "at": "1:30", "note": "on"},
    }


def test_options_read_a_number_only_where_nothing_is_lost(write):
    path = write("""\
        tools:
          t:
            description: d
            backend:
              type: python
              target: t
              options:
                {a: 640, b: 0.5, c: -3, d: true, e: null, f: "640", g: [1, x], h: 0.50, i: "true", j: 1e3}
        """)
    options = Registry.load(path).tool("t").backend.model_dump()["options"]
    assert options == {
        **{"a": 640, "b": 0.5, "c": -3, "d": True, "e": None, "f": "640"},
        **{"g": (1, "x"), "h": "0.50", "i": "true", "j": "1e3"},
    }


def test_numeric_and_boolean_fields_are_read_from_their_text(write):
    path = write("""\
        experts:
          e:
            description: d
            parameters_b: 4
            deterministic: true
            sampling: {temperature: "0.7", max_tokens: 64}
            limits: {timeout_s: 1.5}
            backend: {type: openai, model: m, replicas: [{url: "http://h:08080/v1"}], trust_remote_code: yes}
        """)
    expert = Registry.load(path).expert("e")
    assert (expert.parameters_b, expert.deterministic) == (4.0, True)
    assert (expert.sampling.temperature, expert.sampling.max_tokens, expert.limits.timeout_s) == (
        0.7,
        64,
        1.5,
    )
    assert expert.backend.model_dump()["replicas"][0]["url"] == "http://h:08080/v1"
    assert expert.backend.model_dump()["trust_remote_code"] is True


def test_null_unsets_an_optional_field_unless_quoted(write):
    path = write("""\
        skills:
          s:
            description: d
            default: ~
            subskills:
              a:
                description: d
                procedure: {steps: [{ask: "q", system: "null", when: }], answer: null, repair: ~}
        """)
    skill = Registry.load(path).skill("s")
    procedure = skill.subskills[0].procedure
    assert (skill.default, procedure.answer, procedure.repair) == (None, None, None)
    assert (procedure.steps[0].system, procedure.steps[0].when) == ("null", None)


def test_a_repeated_key_is_refused_with_both_lines(write, faults_of):
    path = write("""\
        tools:
          t:
            description: one
            backend: {type: python, target: t}
            description: two
          t: {description: three, backend: {type: python, target: t}}
        """)
    assert faults_of(path) == [
        "registry.yaml:5: the key 'description' is repeated (first at line 3)",
        "registry.yaml:6: the key 't' is repeated (first at line 2)",
    ]


def test_a_tab_is_named_as_such(write, faults_of):
    path = write("tools:\n\tt: {description: d}\n")
    assert faults_of(path) == ["registry.yaml:2: a tab is used for indentation; use spaces"]


def test_a_byte_order_mark_is_accepted(write):
    text = b"\xef\xbb\xbftools:\n  t: {description: d, backend: {type: python, target: t}}\n"
    assert Registry.load(write(text)).tool("t").name == "t"


@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment\n", "---\n"])
def test_an_empty_file_is_a_fault(write, faults_of, content):
    assert faults_of(write(content)) == [
        "registry.yaml:1: the file is empty; expected 'experts:', 'skills:' or 'tools:'"
    ]


def test_a_file_without_entries_is_a_fault(write, faults_of):
    assert faults_of(write("tools:\nexperts: {}\n")) == ["registry.yaml: no experts, skills or tools in it"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "registry.yaml:1: not UTF-8 text (byte 0x89)"),
        (b"tools:\n  a\x00b: 1\n", "registry.yaml:2: not text: it holds the character U+0000"),
        ("tools: {}".encode("utf-16"), "registry.yaml:1: not UTF-8 text (byte 0xff)"),
        (b"tools: [1, 2", "registry.yaml:1: not readable as YAML: while parsing a flow sequence"),
        (b"a: 1\n--- \nb: 2", "registry.yaml:2: a second document begins here; one file holds one"),
        (b"x: !!python/name:os.system", "registry.yaml:1: tags such as 'tag:yaml.org,2002:python/name"),
        (b"? [a]\n: 1", "registry.yaml:1: a key must be text, not a list or mapping"),
        (b"a: &x [*x]", "registry.yaml:1: the alias '*x' refers to itself"),
        (b"a: *x", "registry.yaml:1: the alias '*x' refers to nothing"),
        (b"- a\n- b", "registry.yaml:1: expected a mapping with 'experts:', 'skills:' or 'tools:'"),
        (b"just words", "registry.yaml:1: expected a mapping with 'experts:', 'skills:' or 'tools:'"),
        (b"[" * 100_000, "registry.yaml:1: nested deeper than 32 levels"),
    ],
)
def test_what_is_not_a_registry_is_refused_in_one_line(write, faults_of, content, fault):
    assert faults_of(write(content))[0].startswith(fault)


def test_random_bytes_are_refused(write):
    with pytest.raises(RegistryFault):
        Registry.load(write(os.urandom(4096)))


def test_aliases_repeat_a_subtree(write):
    path = write("""\
        tools:
          a: &a {description: d, backend: {type: python, target: t}}
          b: *a
        """)
    registry = Registry.load(path)
    assert registry.tool("b").model_dump(exclude={"name"}) == registry.tool("a").model_dump(exclude={"name"})


def test_aliases_cannot_explode(write, faults_of):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    started = time.perf_counter()
    assert faults_of(write("\n".join(lines)))[0].endswith(
        "more than 200000 values, counting each alias in full"
    )
    assert time.perf_counter() - started < 1


def test_merge_keys_are_refused(write, faults_of):
    path = write("""\
        tools:
          a: &a {description: d, backend: {type: python, target: t}}
          b: {<<: *a}
        """)
    assert faults_of(path)[0] == "registry.yaml:3: merge keys ('<<') are not read; write the entries out"


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_file_loads_or_is_a_list_of_faults(write, seed):
    chance = random.Random(seed)
    lines = (Path(__file__).parent / "served.yaml").read_text(encoding="utf-8").split("\n")
    for _ in range(chance.randint(1, 4)):
        row = chance.randrange(len(lines))
        column = chance.randint(0, len(lines[row]))
        damage = chance.choice(
            ["[", "{", "]", ":", "- ", "'", "~", "&a ", "*a", "{{", "%", "!", "\t", "@@", None]
        )
        if damage is None:
            lines[row] = lines[row].partition(":")[0] + ": {name: [x]}"
        else:
            lines[row] = lines[row][:column] + damage + lines[row][column:]
    try:
        registry = Registry.load(write("\n".join(lines)))
    except RegistryFault as fault:
        assert all(one.line is not None for one in fault.faults)
    else:
        assert registry.experts
