"""The house's rules on imports: light core rooms, and arrows that point downwards only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ["torch", "transformers", "vllm", "verl", "ray", "cv2", "rapidocr", "matplotlib", "pandas", "pyarrow"]

# Programs that work on pixels or tensors, loaded by name when a registry or a config asks for them, and the client
# library of served experts, loaded by the first call of one; the HTTP server, loaded by `maestro serve`.
ON_DEMAND = [
    "experts.embedded.",
    "experts.clients.sender",
    "experts.clients.http_transport",
    "orchestrator.policies.sampling",
    "orchestrator.serving.",
]

IMPORT_ALL = """
import importlib, json, pkgutil, sys, time
room, heavy, on_demand = sys.argv[1], json.loads(sys.argv[2]), tuple(json.loads(sys.argv[3]))
started = time.process_time()
package = importlib.import_module(room)
loaded = {}
for module in pkgutil.walk_packages(package.__path__, room + "."):
    if module.name.startswith(on_demand):
        continue
    importlib.import_module(module.name)
    for library in heavy:
        if library in sys.modules:
            loaded.setdefault(library, module.name)
print(json.dumps({"seconds": time.process_time() - started, "loaded": loaded}))
"""


@pytest.mark.parametrize("room", ["registry", "rewards", "experts", "orchestrator"])
def test_a_core_room_imports_in_under_a_second_without_heavy_libraries(room: str) -> None:
    command = [sys.executable, "-c", IMPORT_ALL, room, json.dumps(HEAVY), json.dumps(ON_DEMAND)]
    tries = []
    for _ in range(3):  # other work on the machine only ever adds to the seconds: the best try counts
        result = subprocess.run(command, capture_output=True, text=True, timeout=35, cwd=ROOT)
        assert result.returncode == 0, result.stderr
        tries.append(json.loads(result.stdout))
        if tries[-1]["seconds"] < 1.0:
            break
    assert tries[-1]["loaded"] == {}, "heavy library: the module that loaded it"
    assert min(one["seconds"] for one in tries) < 1.0


def test_rooms_import_downwards_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    code = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert code == 0, capsys.readouterr().out
