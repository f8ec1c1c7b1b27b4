"""Processes of a run: found by their mark, ended whatever they do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from train import processes

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) > 2:
    subprocess.Popen([sys.executable, __file__, sys.argv[1]], start_new_session=True)
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
time.sleep(60)
"""


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_tree_of_children_that_ignore_the_polite_signal_is_ended(tmp_path: Path) -> None:
    script, run = tmp_path / "stubborn.py", tmp_path / "run"
    script.write_text(STUBBORN)
    marks = tmp_path / "marks"
    marks.mkdir()
    job = processes.start([sys.executable, str(script), str(marks), "parent"], {}, run / "logs" / "log", run)
    wait_for(lambda: len(list(marks.iterdir())) == 2)
    pids = {int(p.name) for p in marks.iterdir()}
    assert {p.pid for p in processes.members(run)} == pids
    assert processes.stop(run, patience=0.2) == 2
    assert job.poll() is not None
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids))
    assert processes.members(run) == []


def test_processes_of_another_run_and_of_none_are_left_alone(tmp_path: Path) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    ours = processes.start(sleep, {}, tmp_path / "a.log", tmp_path / "run")
    other = processes.start(sleep, {}, tmp_path / "b.log", tmp_path / "run-2")
    stranger = subprocess.Popen(sleep)
    try:
        assert processes.stop(tmp_path / "run", patience=5) == 1
        assert ours.poll() is not None
        assert (other.poll(), stranger.poll()) == (None, None)
        assert [p.pid for p in processes.members(tmp_path / "run-2")] == [other.pid]
    finally:
        for process in (ours, other, stranger):
            process.kill()
            process.wait()


def test_output_is_appended_to_the_log_and_the_environment_reaches_the_job(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "job.log"
    code = "import os, sys; print(os.environ['COLOUR'], os.environ['MAESTRO_RUN']); print('bad', file=sys.stderr)"
    for _ in range(2):
        assert processes.start([sys.executable, "-uc", code], {"COLOUR": "red"}, log, tmp_path).wait(60) == 0
    assert log.read_text() == f"red {tmp_path}\nbad\n" * 2


def test_a_job_ends_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from train import processes; "
        "print(processes.start([sys.executable, '-c', 'import time; time.sleep(60)'], {}, Path(sys.argv[1]) / 'log', "
        "Path(sys.argv[1])).pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, cwd=os.getcwd())
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()

    def gone() -> bool:
        return not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE

    wait_for(gone)
    assert processes.stop(tmp_path) == 0


def test_nothing_to_stop_is_no_fault(tmp_path: Path) -> None:
    assert processes.stop(tmp_path / "run") == 0
