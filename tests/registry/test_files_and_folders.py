"""Several files: order, extension, replacement on request only."""

from __future__ import annotations

import pickle

import pytest

from registry.registry import Registry, default_registry_path


def tool(name: str, text: str = "d", extra: str = "") -> str:
    return f"tools:\n  {name}:\n    description: {text}\n    backend: {{type: python, target: t}}\n" + (
        f"    {extra}\n" if extra else ""
    )


def test_later_files_extend_earlier_ones_in_the_given_order(write):
    paths = [write(tool("b"), "b.yaml"), write(tool("a"), "a.yaml")]
    assert [part.name for part in Registry.load(*paths).tools] == ["b", "a"]


def test_a_folder_is_read_by_file_name_without_its_sub_folders(write, tmp_path):
    write(tool("second"), "20.yml")
    write(tool("first"), "10.yaml")
    write(tool("hidden"), "deeper/00.yaml")
    write("not yaml: [", "notes.txt")
    assert [part.name for part in Registry.load(tmp_path).tools] == ["first", "second"]


def test_two_files_with_the_same_name_are_a_fault_naming_both(write, faults_of, tmp_path):
    one, two = write(tool("Read Text"), "1.yaml"), write(tool("read-text"), "2.yaml")
    assert [fault.replace(str(tmp_path), "") for fault in faults_of(one, two)] == [
        "2.yaml:2: tool 'read-text': is already at 1.yaml:2; "
        "write 'replace: true' into it to replace that one"
    ]


def test_replace_takes_the_earlier_entrys_place(write):
    one = write(tool("a") + tool("b")[len("tools:\n") :], "1.yaml")
    two = write(tool("A", "new", "replace: true"), "2.yaml")
    registry = Registry.load(one, two)
    assert [(part.name, part.description) for part in registry.tools] == [("A", "new"), ("b", "d")]


def test_replacing_nothing_is_a_fault(write, faults_of):
    one, two = write(tool("zoom"), "1.yaml"), write(tool("zom", "new", "replace: true"), "2.yaml")
    assert faults_of(one, two) == [
        "2.yaml:2: tool 'zom': says 'replace: true' but no earlier file has it (did you mean 'zoom'?)"
    ]


def test_one_file_cannot_replace_within_itself(write, faults_of):
    path = write(tool("a") + tool("A", "x", "replace: true")[len("tools:\n") :])
    assert faults_of(path) == ["registry.yaml:5: tool 'A': is here twice (first at line 2)"]


def test_an_alias_may_not_take_another_files_name(write, faults_of):
    one, two = write(tool("ocr"), "1.yaml"), write(tool("reader", extra="aliases: [OCR]"), "2.yaml")
    assert faults_of(one, two) == [
        "2.yaml:5: tool 'reader', aliases[0]: the name 'OCR' already stands for the tool 'ocr'"
    ]


def test_a_file_met_twice_is_read_once(write, tmp_path):
    path = write(tool("a"))
    assert len(Registry.load(path, tmp_path, path).tools) == 1


def test_a_link_back_to_the_folder_is_no_loop(write, tmp_path):
    write(tool("a"))
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "again.yaml").symlink_to(tmp_path / "registry.yaml")
    assert len(Registry.load(tmp_path).tools) == 1


def test_includes_do_not_exist(write, faults_of):
    path = write("include: registry.yaml\n")
    assert faults_of(path)[0] == "registry.yaml:1: unknown key 'include'; known: experts, skills, tools"


def test_missing_paths_and_empty_folders_are_faults(write, faults_of, tmp_path):
    write(tool("a"), "tools.yaml")
    (tmp_path / "empty").mkdir()
    assert faults_of(tmp_path / "tool.yaml", tmp_path / "empty") == [
        "empty: the folder holds no *.yaml file",
        "tool.yaml: no such file or folder (did you mean 'tools.yaml'?)",
    ]


def test_the_digest_follows_the_content_not_the_file(write):
    one = Registry.load(write(tool("a"), "1.yaml"))
    same = Registry.load(write("# a comment\n" + tool("a"), "2.yaml"))
    other = Registry.load(write(tool("a", "e"), "3.yaml"))
    assert one.digest == same.digest != other.digest
    assert len(one.digest) == 64
    assert one == same


def test_each_part_knows_where_it_was_defined(write):
    path = write(tool("a"))
    assert Registry.load(path).places == {("tool", "a"): (str(path), 2)}


def test_a_loaded_registry_cannot_change(write):
    registry = Registry.load(write(tool("a").replace("target: t", "target: t, options: {n: [1]}")))
    with pytest.raises(AttributeError):
        registry.tools = ()  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        registry.tools[0].name = "b"
    with pytest.raises(TypeError, match="read-only"):
        registry.tools[0].backend.options["n"] = 2  # type: ignore[union-attr]
    assert hash(registry.tools[0]) == hash(registry.tools[0].model_copy())


def test_a_registry_survives_the_way_to_another_process(write):
    registry = Registry.load(write(tool("a").replace("target: t", "target: t, options: {n: [1]}")))
    copy = pickle.loads(pickle.dumps(registry))
    assert copy == registry and copy.digest == registry.digest and copy.tool("A").name == "a"


def test_the_default_registry_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = default_registry_path()
    assert path.is_absolute() and path.parts[-3:] == ("configs", "registry", "embedded.yaml")
    assert Registry.load() == Registry.load(path)
