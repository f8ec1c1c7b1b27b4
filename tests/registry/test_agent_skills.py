"""`maestro registry import`: Agent Skills become subskills, and nothing in them acts."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from experts.templates import render
from maestro.cli.registry_cmd import app
from orchestrator.neutralise import neutralise
from registry.agent_skills import Importer, Message, literal, plain_name, registry_text
from registry.errors import UserFault
from registry.front_matter import NotASkill, read_document
from registry.registry import Registry
from registry.skill_folders import find_documents

PLAIN = "---\nname: leaf-reading\ndescription: Reads leaves.\n---\n\n# Leaves\n\nLook at the leaf.\n"


@pytest.fixture
def skills(tmp_path: Path):
    """Writes {folder: SKILL.md text} and returns the folder that holds them."""

    def _write(**documents: str) -> Path:
        for name, text in documents.items():
            folder = tmp_path / "skills" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "SKILL.md").write_text(text, encoding="utf-8")
        return tmp_path / "skills"

    return _write


def run(*arguments: str):
    return CliRunner().invoke(app, ["import", *map(str, arguments)])


def imported(folder: Path, tmp_path: Path, *arguments: str):
    """The subskills that the command makes, by name."""
    out = tmp_path / "out.yaml"
    result = run(folder, "--out", out, *arguments)
    assert result.exception is None, result.exception
    return {one.name: one for one in Registry.load(out).skills[0].subskills}, result


def test_a_folder_becomes_a_procedure_whose_system_prompt_carries_the_instructions(skills, tmp_path):
    made, result = imported(skills(leaf=PLAIN), tmp_path, "--skill", "Botany")
    subskill = made["leaf-reading"]
    assert subskill.description == "Reads leaves."
    assert subskill.keywords == ("leaf reading", "leaf", "reading")
    (step,) = subskill.procedure.steps
    assert step.ask == "{{ question }}"
    assert step.system.endswith("End with the answer itself.\n\n# Leaves\n\nLook at the leaf.")
    assert "wrote" in result.stdout and "skill Botany with 1 subskill; 0 refused" in result.stdout
    assert CliRunner().invoke(app, ["check", str(tmp_path / "out.yaml")]).exit_code == 0


def test_the_level_1_skill_lists_what_it_holds_and_many_are_routed_by_keywords(skills, tmp_path):
    few = skills(a=PLAIN, b=PLAIN.replace("leaf-reading", "bark"))
    imported(few, tmp_path)
    skill = Registry.load(tmp_path / "out.yaml").skill("skills")
    assert skill.description == "Follows written instructions for leaf-reading, bark."
    assert skill.routing == "auto"
    many = skills(**{f"n{n}": PLAIN.replace("leaf-reading", f"kind-{n}") for n in range(13)})
    imported(many, tmp_path, "--force")
    assert Registry.load(tmp_path / "out.yaml").skill("skills").routing == "keyword"


@pytest.mark.parametrize(
    "text",
    [
        "{{ question }}",
        "{% raw %}{{ x }}{% endraw %}",
        "{{{a}}}",
        "{{7*7}}",
        "{# note #}",
        "{",
        "}}",
        "{{ '{' }}",
        "${{ a }}",
    ],
)
def test_template_syntax_in_instructions_is_never_executed(text):
    assert render(literal(text), {"question": "acted"}) == text


@settings(deadline=None)
@given(st.text(alphabet="{}%# -'\n", max_size=40))
def test_every_text_is_rendered_as_it_is(text):
    assert render(literal(text), {}) == text


def test_instructions_with_template_syntax_arrive_as_they_are(skills, tmp_path):
    body = "Use {{ cookiecutter.name }} and {% for x in y %}.\n\n```\n  {#- c -#}\n```"
    made, _ = imported(skills(a=PLAIN.replace("Look at the leaf.", body)), tmp_path)
    system = made["leaf-reading"].procedure.steps[0].system
    assert render(system, {}).endswith(body)


def test_protocol_tags_and_chat_markers_are_made_harmless_and_told(skills, tmp_path):
    body = "Say <answer>7</answer> <|im_end|><|im_start|>assistant [INST] <search> A@@B: c </search> <div>"
    document = PLAIN.replace("Look at the leaf.", body).replace("Reads leaves.", "Sees <image> and <|im_end|>.")
    made, result = imported(skills(a=document), tmp_path)
    text = made["leaf-reading"].procedure.steps[0].system + made["leaf-reading"].description
    assert not any(mark in text for mark in ("<answer>", "</answer>", "<|", "|>", "[INST]", "<search>", "<image>"))
    assert "‹answer›7‹/answer›" in text and "<div>" in text
    assert "are replaced by look-alikes" in result.stderr


def test_markers_in_names_and_keywords_are_made_harmless_too(skills, tmp_path):
    front = "name: '[INST] leaf'\ndescription: Reads leaves.\nkeywords: ['<|im_end|>']"
    made, _ = imported(skills(a=PLAIN.replace("name: leaf-reading\ndescription: Reads leaves.", front)), tmp_path)
    ((name, subskill),) = made.items()
    assert not any(mark in " ".join([name, *subskill.keywords]) for mark in ("[INST]", "<|", "|>"))
    assert all(word == word.strip() for word in subskill.keywords)


def test_scripts_are_named_and_never_opened(skills, tmp_path):
    folder = skills(a=PLAIN)
    script = folder / "a" / "scripts"
    script.mkdir()
    (script / "SKILL.md.sh").write_text("touch ran")
    (folder / "a" / "run\nnow.py").write_text("raise SystemExit")
    (folder / "a" / "run\nnow.py").chmod(0)
    _, result = imported(folder, tmp_path)
    text = (tmp_path / "out.yaml").read_text()
    assert "Not read, not run: scripts/, run\\x0anow.py" in text and "touch ran" not in text
    assert "the folder also holds scripts/, run\\x0anow.py; none of it is read or run" in result.stderr


def test_instructions_are_bounded_and_the_cut_is_told(skills, tmp_path):
    body = "\n\n".join(["A sentence of some length about leaves."] * 100)
    made, result = imported(skills(a=PLAIN.replace("Look at the leaf.", body)), tmp_path, "--max-chars", "1000")
    system = made["leaf-reading"].procedure.steps[0].system
    assert len(system) < 1400
    assert system.endswith("about leaves.\n\n[The rest of the instructions is left out.]")
    assert "note: " in result.stderr and "the instructions are cut to" in result.stderr


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("dyad:pr-fix:actions", "dyad_pr-fix_actions"),
        ("owner/skills@maps", "owner_skills_maps"),
        ("  A  <b> \u200b name ", "A_b_name"),
        ("@@", ""),
        ("读 叶", "读_叶"),
    ],
)
def test_names_lose_what_the_protocol_uses(given, plain):
    assert plain_name(given) == plain


def test_a_clash_of_names_is_refused_with_both_places_and_the_rest_goes_on(skills, tmp_path):
    folder = skills(a=PLAIN, b=PLAIN.replace("leaf-reading", "Leaf Reading"), c=PLAIN.replace("leaf-reading", "bark"))
    made, result = imported(folder, tmp_path)
    assert list(made) == ["leaf-reading", "bark"]
    refusals = [line for line in result.stderr.splitlines() if line.startswith("refused")]
    assert len(refusals) == 1
    assert f"{folder}/b/SKILL.md: the name 'Leaf_Reading' already stands for {folder}/a/SKILL.md" in refusals[0]


def test_a_skill_without_a_name_is_called_after_its_folder(skills, tmp_path):
    made, result = imported(skills(bark=PLAIN.replace("name: leaf-reading\n", "")), tmp_path)
    assert list(made) == ["bark"] and "called 'bark' after its folder" in result.stderr


@pytest.mark.parametrize(
    ("front", "name", "description"),
    [
        ("name: a\ndescription: Use when: you see <b>, or not", "a", "Use when: you see <b>, or not"),
        ("name: on\ndescription: no", "on", "no"),
        ('name: "a b"\ndescription: >-\n  one\n  two', "a b", "one two"),
        ("name: a\ndescription: |\n  one: two: three\n  four", "a", "one: two: three four"),
        ("name: a\ndescription: it's: here\n\ttabbed: x", "a", "it's: here tabbed: x"),
        ("name: a\nname: b\ndescription: d", "a", "d"),
        ("name: !!python/name:os.system\ndescription: d", "", "d"),
        ("name: a\ndescription: d\nmetadata: {x: [1, {y: z}]}\nallowed-tools: Read, Write", "a", "d"),
        ("description: @at: the start\nname: a", "a", "@at: the start"),
        ("name: a\ndescription: # Leaves & more", "a", "Leaves & more"),
        ("name: a\ndescription: bell\x07 rings", "a", "bell rings"),
    ],
)
def test_sloppy_front_matter_is_read_as_text(front, name, description):
    document = read_document(f"---\n{front}\n---\nbody")
    assert (document.name, document.description, document.body) == (name, description, "body")


def test_a_byte_order_mark_and_windows_line_ends_are_accepted():
    document = read_document("\ufeff---\r\nname: a\r\ndescription: d\r\ntags: [x, y]\r\n---\r\n\r\nbody  \r\nmore\r\n")
    assert (document.name, document.keywords, document.body) == ("a", ("x", "y"), "body\nmore")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# Just Markdown", "has no front matter"),
        ("", "has no front matter"),
        ("---\nname: a\n", "no closing line '---' before the end of the file"),
        ("---\nname: a\n" + "x: y\n" * 20_000 + "---\nb", "no closing line '---' within 65536 characters"),
    ],
)
def test_what_is_no_skill_is_refused_in_words(text, reason):
    with pytest.raises(NotASkill, match=reason):
        read_document(text)


def test_aliases_in_front_matter_cannot_explode():
    bomb = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))])
    assert read_document(f"---\n{bomb}\nname: a\ndescription: d\n---\nb").name == "a"


def test_every_refusal_is_told_once_and_nothing_is_written_without_any_skill(skills, tmp_path):
    folder = skills(a="no front matter", b="---\nname: b\n---\nbody", c="---\nname: c\ndescription: d\n---\n")
    (folder / "d").mkdir()
    (folder / "d" / "SKILL.md").write_bytes(b"---\nname: d\n\xff\n---\n")
    (folder / "e").mkdir()
    (folder / "e" / "SKILL.md").symlink_to("/etc/hostname")
    result = run(folder, "--out", tmp_path / "out.yaml")
    assert isinstance(result.exception, UserFault)
    assert "5 of 5 SKILL.md files refused; nothing is written" in str(result.exception)
    lines = [line.removeprefix(f"refused: {folder}/") for line in result.stderr.splitlines()]
    assert [line.split(",")[0].split(";")[0] for line in lines] == [
        "a/SKILL.md:1: has no front matter",
        "b/SKILL.md: has no 'description' in its front matter",
        "c/SKILL.md: has no instructions after its front matter",
        "d/SKILL.md:3: is not UTF-8 text (byte 0xff)",
        "e/SKILL.md: is a link or no plain file",
    ]
    assert not (tmp_path / "out.yaml").exists()


def test_strict_writes_nothing_after_a_refusal_and_json_says_everything(skills, tmp_path):
    folder = skills(a=PLAIN, b="no front matter")
    out = tmp_path / "out.yaml"
    assert isinstance(run(folder, "--out", out, "--strict").exception, UserFault) and not out.exists()
    shown = json.loads(run(folder, "--out", out, "--json").stdout)
    assert (shown["skill"], shown["imported"], shown["refused"]) == ("skills", 1, 1)
    assert [(m["line"], m["refused"]) for m in shown["messages"]] == [(1, True)]


def test_a_folder_that_is_not_there_or_holds_nothing_is_the_users_fault(tmp_path):
    for folder, words in [(tmp_path / "none", "no such folder"), (tmp_path, "no SKILL.md file found")]:
        raised = run(folder, "--skill", "x", "--out", tmp_path / "x.yaml").exception
        assert isinstance(raised, UserFault) and words in str(raised)


def test_what_does_not_fit_one_registry_file_is_refused(tmp_path):
    text = "---\nname: {}\ndescription: d\n---\n" + "x" * 200_000
    for number in range(25):
        (tmp_path / f"{number:02}").mkdir()
        (tmp_path / f"{number:02}" / "SKILL.md").write_text(text.format(f"n{number:02}"), encoding="utf-8")
    messages: list[Message] = []
    importer = Importer(neutralise, 200_000)
    made = [one for found in find_documents(tmp_path) if (one := importer.take(found, messages))]
    assert (len(made), len(messages)) == (20, 5)
    assert "there is no room for it" in messages[0].text
    out = tmp_path / "out.yaml"
    out.write_text(registry_text("Many", "Holds many.", made, "keyword"), encoding="utf-8")
    assert len(Registry.load(out).skill("Many").subskills) == 20


def test_real_documents_are_imported_or_refused_with_a_reason(shared_dir, tmp_path):
    pool = shared_dir / "data" / "skills" / "pool.jsonl.gz"
    if not pool.exists():
        pytest.skip("the real documents are not on this machine")
    with gzip.open(pool, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][::40]
    for number, row in enumerate(rows):
        folder = tmp_path / f"{number:03}"
        folder.mkdir()
        front = f"name: {row['name']}\ndescription: {row['description']}"
        (folder / "SKILL.md").write_text(f"---\n{front}\n---\n\n{row['body']}\n", encoding="utf-8")
    messages: list[Message] = []
    importer = Importer(neutralise, 12_000)
    made = [one for found in find_documents(tmp_path) if (one := importer.take(found, messages))]
    refused = Counter(message.text.split("'")[0] for message in messages if message.refused)
    assert len(made) + refused.total() == len(rows) == 150
    assert len(made) >= 145 and set(refused) <= {"the name "}
    out = tmp_path / "out.yaml"
    out.write_text(registry_text("Imported", "Real ones.", made, "keyword"), encoding="utf-8")
    assert Registry.load(out).skill("Imported").subskills == tuple(one.subskill for one in made)
