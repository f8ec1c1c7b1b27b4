"""HumanEval-V: the answer is a program, and right when the row's tests pass with it.

The one idea: the gold answer is one text, the code before the answer and the tests after it with a line between
them that marks the answer's place, so a saved trajectory alone is enough to run the tests again. Programs run
in `experts.sandbox` and nowhere else.
"""

from __future__ import annotations

import ast
import re

from experts.sandbox.limits import SandboxLimits
from experts.sandbox.result import SandboxResult
from experts.sandbox.run import run_python
from registry.errors import UserFault
from rewards import Score
from rewards.read_answer import answer_in

MARK = "# ----- the answer stands here -----"
MAX_PROGRAM_CHARS = 64 * 1024
LIMITS = SandboxLimits(wall_s=5.0, cpu_s=2.0, output_bytes=16 * 1024)
"""2 s of computing are the published limit; the wall clock leaves an interpreter time to start."""
PACKAGES = ("numpy",)
_FENCE = re.compile(r"```[ ]?python[^\n]*\n(.*?)```", re.DOTALL)
_ANY_FENCE = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)
_PROTOCOL = re.compile(r"</?(?:answer|think|search|information)>")


def join_program(before: str, tests: str) -> str:
    """The gold text of a row. Raises ValueError when a part holds the mark itself, or the tests check nothing."""
    if MARK in before or MARK in tests:
        raise ValueError(f"the code holds the line {MARK!r}")
    if "assert" not in tests and "check" not in tests:
        raise ValueError("the test script holds no assertion")
    return f"{before.rstrip()}\n{MARK}\n{tests.strip()}\n"


def split_program(gold: str) -> tuple[str, str]:
    """The code before the answer, and the tests. Raises ValueError for a text that `join_program` did not make."""
    before, mark, tests = gold.partition(f"\n{MARK}\n")
    if not mark:
        raise ValueError("the gold answer is no test program")
    return before, tests


def program_in(answer: str, signature: str) -> str:
    """The answer's program: its Python blocks in order, else its first other block, else the bare text; a body
    without its signature gets it. Of what parses only imports, functions and classes are kept, so no example run
    of the answer's own disturbs the tests."""
    blocks = _FENCE.findall(answer) or _ANY_FENCE.findall(answer)[:1] or [answer]
    code = "\n".join(blocks)
    if code.startswith((" ", "\n ", "\t")):
        code = f"{signature}\n{code}"
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    return "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, kept))


def run_tests(gold: str, answer: str | None, *, limits: SandboxLimits = LIMITS) -> Score:
    """1 when the tests pass with the answer. Safe to call from many threads.

    Raises ValueError for a gold text without tests, UserFault where nothing here can keep a program in: then no
    answer can be scored, and none is wrong.
    """
    before, tests = split_program(gold)
    text = None if answer is None else answer_in(answer) if _PROTOCOL.search(answer) else answer
    if text is None or not text.strip():
        return Score(0.0, None, "no answer")
    if len(text) > MAX_PROGRAM_CHARS:
        return Score(0.0, None, f"ungradable: the answer has {len(text)} characters, the limit is {MAX_PROGRAM_CHARS}")
    program = program_in(text, before)
    stub = f"{before}\n    pass\n\n" if before.strip() else ""
    result = run_python(f"{stub}{program}\n", test=tests, packages=PACKAGES, limits=limits)
    if result.status == "refused":
        raise UserFault(f"the program can't be run: {result.detail}", where="sandbox")
    return Score(float(result.passed), program[:200], f"tests {result.status}: {_why(result)}")


def require_sandbox(benchmark: str) -> None:
    """Raises UserFault where nothing here can keep a program in, with all that was tried: then no answer of
    ``benchmark`` can be scored. Takes about a second; a busy machine is given a second try."""
    result = run_python("", packages=PACKAGES, limits=LIMITS)
    if result.status == "refused":
        result = run_python("", packages=PACKAGES, limits=LIMITS)
    if result.status == "refused":
        raise UserFault(
            f"the answers of {benchmark} are programs, and there is no sandbox here to run them in: {result.detail}",
            where=f"benchmark {benchmark}",
            fix="install bubblewrap (its program is bwrap), or allow user namespaces, or use Linux 5.13 or later with "
            "Landlock on x86-64; docs/sandbox.md tells what each needs",
        )


def _why(result: SandboxResult) -> str:
    if result.passed:
        return "all pass"
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    return (lines[-1] if result.status == "failed" and lines else result.detail or "no message")[:300]
