"""Which GPUs there are: the driver's, or those that are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experts.serving.gpus import Gpu, found_gpus
from maestro.cli.app import run
from registry.errors import UserFault

PAPER = Path(__file__).resolve().parents[2] / "configs" / "registry" / "paper.yaml"


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def _write(output: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n")
        program.chmod(0o755)

    return _write


def test_gpus_are_those_that_the_driver_names(nvidia_smi: Callable[[str], None], monkeypatch) -> None:
    nvidia_smi("0, 81920, 81000, NVIDIA A100-SXM4-80GB\n1, 81920, 40960, NVIDIA A100, odd")
    assert found_gpus() == (Gpu(0, 80.0, 79.1015625, "NVIDIA A100-SXM4-80GB"), Gpu(1, 80.0, 40.0, "NVIDIA A100, odd"))
    assert [gpu.index for gpu in found_gpus([1])] == [1]
    with pytest.raises(UserFault, match="GPU 2, 3 is not in this machine; it has 0, 1"):
        found_gpus([1, 2, 3])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,,1")
    with pytest.raises(UserFault, match=r"where: CUDA_VISIBLE_DEVICES"):
        found_gpus()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [gpu.index for gpu in found_gpus()] == [1]
    for odd in ("GPU-aaaa,GPU-bbbb", ""):  # other people's GPUs are never taken for want of understanding
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", odd)
        with pytest.raises(UserFault, match="CUDA_VISIBLE_DEVICES is"):
            found_gpus()


def test_a_machine_without_gpus_is_told_so(nvidia_smi: Callable[[str], None]) -> None:
    with pytest.raises(UserFault, match="this machine has no nvidia-smi"):
        found_gpus()
    nvidia_smi("No devices were found")
    with pytest.raises(UserFault, match="names no GPU: No devices were found"):
        found_gpus()


@pytest.mark.parametrize("text", ["", "0,,1", "-1", "0,x", "1.5", "9999"])
def test_a_list_of_gpus_that_is_none_is_one_message(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--dry-run", "--registry", str(PAPER), f"--gpus={text}", "--gpu-memory", "80"]
    assert run(["experts", "serve", *words]) == 2
    assert capsys.readouterr().err == (
        f"error: --gpus takes numbers such as 0,1,2,3, not {text!r}\n  where: --gpus\n"
        "  fix: write the numbers that nvidia-smi shows, with commas between them; without any all GPUs are used\n"
    )


def test_a_gpu_that_is_named_twice_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--dry-run", "--registry", str(PAPER), "--gpus", "1,0,1", "--gpu-memory", "80"]
    assert run(["experts", "serve", *words]) == 2
    assert capsys.readouterr().err == (
        "error: --gpus names a GPU twice: 1,0,1\n  where: --gpus\n  fix: write each number once: 1,0\n"
    )
