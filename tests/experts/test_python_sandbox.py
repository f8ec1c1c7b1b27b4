"""The sandbox in use: what programs get, what comes back, how many run at once, and what is refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sandbox_doubles import ABSENT, MIB, attack, refusing_filter

from experts.sandbox import linux
from experts.sandbox.isolation import NAMES, available
from experts.sandbox.limits import SandboxLimits
from experts.sandbox.run import run_python
from registry.errors import UserFault

ROOT = Path(__file__).resolve().parents[2]
needs_one = pytest.mark.skipif(len(ABSENT) == len(NAMES), reason=f"nothing isolates here: {ABSENT}")


def test_a_program_runs_with_its_input_and_files(isolation: str) -> None:
    result = run_python(
        "import helper\nprint(input() + helper.WORD, open('data/a.txt').read(), open('data/b').read())",
        stdin="hällo\n",
        files={"helper.py": b"WORD = ' you'", "data/a.txt": "ä".encode(), "data/b": b""},
        isolation=isolation,
    )
    assert (result.status, result.returncode, result.stdout, result.stderr) == ("passed", 0, "hällo you ä \n", "")
    assert result.isolation == isolation
    assert 0 < result.seconds < 10


def test_a_program_writes_and_reads_in_its_own_folder(isolation: str) -> None:
    source = """
import os, tempfile
open("a", "w").write("one")
os.rename("a", "b")
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("two")
    file.seek(0)
    print(open("b").read(), file.read())
os.remove("b")
print(sorted(os.listdir()))
"""
    result = run_python(source, isolation=isolation)
    assert (result.stdout, result.stderr) == ("one two\n['main.py']\n", "")


@pytest.mark.parametrize(
    ("source", "code", "last_line"),
    [
        ("assert 1 == 2, 'no'", 1, "AssertionError: no"),
        ("import sys; sys.exit(7)", 7, ""),
        ("def f(:", 1, "SyntaxError: invalid syntax"),
        ("", 0, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -15, ""),
        ("input()", 1, "EOFError: EOF when reading a line"),
        ("print(chr(0xd800))", 1, "surrogates not allowed"),
    ],
)
def test_the_exit_code_decides(isolation: str, source: str, code: int, last_line: str) -> None:
    result = run_python(source, isolation=isolation)
    assert result.returncode == code
    assert result.status == ("passed" if code == 0 else "failed")
    assert result.stderr.rstrip().rpartition("\n")[2].endswith(last_line)


def test_undecodable_output_and_odd_sources_do_no_harm(isolation: str) -> None:
    assert run_python("import os; os.write(1, b'a\\xff\\n')", isolation=isolation).stdout == "a\ufffd\n"
    assert run_python("print('\ud800')", isolation=isolation).stdout == "?\n"
    assert run_python("print(1)\0", isolation=isolation).status == "failed"


def test_asyncio_runs_inside(isolation: str) -> None:
    source = "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 3\nprint(asyncio.run(f()))"
    assert run_python(source, isolation=isolation).stdout == "3\n"


def test_a_test_runs_after_the_source_in_the_same_module(isolation: str) -> None:
    source = "def double(x):\n    return 2 * x"
    passed = run_python(source, test="assert double(2) == 4\nprint('ok')", isolation=isolation)
    assert (passed.status, passed.stdout) == ("passed", "ok\n")
    assert run_python(source, test="assert double(2) == 5", isolation=isolation).status == "failed"


def test_a_program_that_ends_before_its_test_has_failed(isolation: str) -> None:
    result = run_python("import sys\nprint('x')\nsys.exit(0)", test="assert False", isolation=isolation)
    assert (result.status, result.returncode, result.stdout) == ("failed", 0, "x\n")
    assert result.detail == "ended before its test began"


def test_a_test_may_end_the_program_itself(isolation: str) -> None:
    assert run_python("x = 1", test="import sys\nsys.exit(0)", isolation=isolation).status == "passed"


def test_named_packages_can_be_imported_and_others_not(isolation: str) -> None:
    source = "import numpy\nprint(numpy.arange(4).sum(), (numpy.eye(3) @ numpy.eye(3)).trace())"
    assert run_python(source, packages=["numpy"], isolation=isolation).stdout == "6 3.0\n"
    assert "No module named 'numpy'" in run_python(source, isolation=isolation).stderr
    both = run_python("import numpy, pydantic", packages=["numpy"], isolation=isolation)
    assert both.status == "failed"


@needs_one
def test_a_package_that_is_not_installed_is_the_callers_fault() -> None:
    with pytest.raises(UserFault, match="no installed package 'no_such_thing'"):
        run_python("", packages=["no_such_thing"])


def test_twenty_at_once_from_threads_do_not_meet(isolation: str) -> None:
    source = "import os\nopen('x', 'x').write(input())\nprint(open('x').read())"
    with ThreadPoolExecutor(20) as threads:
        results = list(threads.map(lambda n: attack(source, isolation, stdin=f"{n}\n", wall_s=60), range(20)))
    assert [result.stdout for result in results] == [f"{number}\n" for number in range(20)]


@needs_one
def test_asyncio_goes_on_while_programs_run() -> None:
    async def both() -> tuple[str, int]:
        run = asyncio.create_task(asyncio.to_thread(run_python, "import time; time.sleep(0.3); print(1)"))
        turns = 0
        while not run.done():
            await asyncio.sleep(0.01)
            turns += 1
        return (await run).stdout, turns

    stdout, turns = asyncio.run(both())
    assert stdout == "1\n"
    assert turns > 5


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", ".", "main.py", "a\0b"])
@needs_one
def test_files_outside_the_folder_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name for a file beside main"):
        run_python("", files={name: b""})


@needs_one
def test_more_input_than_the_folder_holds_is_refused() -> None:
    result = run_python("", files={"a": bytes(2 * MIB)}, limits=SandboxLimits(scratch_bytes=MIB))
    assert (result.status, result.returncode) == ("refused", None)
    assert result.detail == "source, input and files have 2097152 bytes; scratch_bytes allows 1048576"


@pytest.mark.parametrize(
    ("field", "value"),
    [("wall_s", 0), ("wall_s", float("nan")), ("cpu_s", "5"), ("memory_bytes", 1.5), ("processes", True)],
)
def test_impossible_limits_are_the_callers_fault(field: str, value: object) -> None:
    with pytest.raises(UserFault, match=f"{field} must be a"):
        SandboxLimits(**{field: value})  # pyright: ignore[reportArgumentType]


ON_A_STRICT_MACHINE = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from experts.sandbox import linux
linux.no_new_privileges()
linux.filter_calls(bytes.fromhex(sys.argv[2]))
from experts.sandbox.isolation import available
from experts.sandbox.run import run_python
print(available().name)
print(available())
result = run_python("print('it ran')")
print(result.status, result.returncode, repr(result.stdout), result.detail)
"""


def on_a_strict_machine(code: bytes) -> list[str]:
    command = [sys.executable, "-c", ON_A_STRICT_MACHINE, str(ROOT), code.hex()]
    # Without the PATH there is no bubblewrap either.
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"PATH": "/nowhere"})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(not linux.X86_64, reason="the filter is for x86-64")
def test_where_nothing_isolates_the_run_is_refused_with_the_reasons() -> None:
    name, reasons, result = on_a_strict_machine(refusing_filter(landlock=True))
    assert name == "none"
    assert "namespaces: could not be set up: clone: Operation not permitted" in reasons
    assert "landlock: could not be set up: landlock: Function not implemented" in reasons
    assert "bubblewrap: no program bwrap on the PATH" in reasons
    assert result.startswith("refused None '' nothing here keeps a program in (")


@pytest.mark.skipif("landlock" in ABSENT, reason=f"no landlock here: {ABSENT.get('landlock')}")
def test_where_namespaces_are_forbidden_landlock_is_used() -> None:
    name, reasons, result = on_a_strict_machine(refusing_filter(landlock=False))
    assert name == "landlock"
    assert "namespaces: could not be set up: clone: Operation not permitted" in reasons
    assert result == r"passed 0 'it ran\n' "


@needs_one
def test_what_holds_here_is_named() -> None:
    here = available()
    assert here.works
    assert here.name in NAMES
    assert "no network" in here.holds
    assert here.name not in here.why_not


def test_an_unknown_isolation_is_an_error() -> None:
    with pytest.raises(ValueError, match="isolation must be one of bubblewrap, namespaces, landlock, not 'chroot'"):
        run_python("", isolation="chroot")
