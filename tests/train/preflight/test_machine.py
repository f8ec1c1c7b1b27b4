"""The preflight of this machine: versions, GPUs, Ray, ports, disk and the policy's folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from experts.serving.gpus import Gpu
from registry.errors import UserFault
from train.config import TrainConfig
from train.launch.cluster import RayNode, ask_nodes
from train.preflight import disk, gpus, policy, ports, ray_cluster, versions
from train.preflight.check import NotYet
from train.preflight.site import Site

GIB = 2**30


def site(**fields: Any) -> Site:
    return Site(TrainConfig.model_validate({"platform": "cuda"} | fields))


def found(**versions_: str | None) -> Any:
    return ({"verl": "0.9.1", "vllm": "0.24.0", "torch": "2.11.0"} | versions_).get


def test_the_pinned_versions_pass_and_others_are_named_with_the_pin() -> None:
    assert versions.check(site(), found()) == "verl 0.9.1, vllm 0.24.0"
    with pytest.raises(UserFault, match=r"vllm 0\.23\.0, 0\.24\.0 is needed"):
        versions.check(site(), found(vllm="0.23.0"))
    with pytest.raises(UserFault, match="verl is not installed"):
        versions.check(site(), found(verl=None))


def test_builds_for_cpus_are_refused_on_a_gpu_node_alone() -> None:
    build = found(vllm="0.24.0+cpu", torch="2.11.0+cpu")
    with pytest.raises(UserFault, match=r"built for CPUs: vllm 0\.24\.0\+cpu, torch 2\.11\.0\+cpu"):
        versions.check(site(), build)
    assert versions.check(site(platform="cpu"), build) == "verl 0.9.1, vllm 0.24.0+cpu"


def a100(count: int, free: float = 79.0) -> Any:
    return lambda: [Gpu(index, 80.0, free, "A100") for index in range(count)]


def test_gpus_are_counted_and_their_free_memory_is_held_against_the_engines_share() -> None:
    four = site(cluster={"gpus_per_node": 4})
    assert gpus.check(four, a100(8)) == "4 of 8: A100, 79.0 GiB free or more"
    with pytest.raises(UserFault, match="asks for 4 GPUs, this node shows 2"):
        gpus.check(four, a100(2))
    with pytest.raises(UserFault, match=r"engine\.memory=0\.6 will take: GPU 0 40\.0 of 80\.0 GiB, GPU 1"):
        gpus.check(four, a100(4, free=40.0))


def test_a_machine_without_gpus_is_no_node_that_trains() -> None:
    def none() -> list[Gpu]:
        raise UserFault("no GPU is found: this machine has no nvidia-smi", fix="plan")

    with pytest.raises(UserFault, match="no nvidia-smi") as fault:
        gpus.check(site(), none)
    assert fault.value.fix == "run this on the node that trains"
    assert gpus.check(site(platform="cpu"), none) == "platform cpu needs none"
    with pytest.raises(NotYet, match="counted by the check `ray`"):
        gpus.check(site(ray={"address": "auto"}), none)


def test_a_cluster_of_the_runs_own_has_one_node_and_no_other_cluster_in_the_environment() -> None:
    assert ray_cluster.check(site(), {}) == "a cluster of the run's own, on this node"
    with pytest.raises(UserFault, match=r"RAY_ADDRESS=10\.0\.0\.1:6379 is set: Ray would join that cluster"):
        ray_cluster.check(site(), {"RAY_ADDRESS": "10.0.0.1:6379"})
    with pytest.raises(UserFault, match=r"cluster\.nodes=2, and a cluster of the run's own has this node alone"):
        ray_cluster.check(site(cluster={"nodes": 2}), {})


def test_a_joined_cluster_must_have_its_nodes() -> None:
    joined = site(ray={"address": "head:6379"}, cluster={"nodes": 2, "gpus_per_node": 4})
    nodes = [RayNode("10.0.0.1", 8), RayNode("10.0.0.2", 4), RayNode("10.0.0.3", 0)]
    assert ray_cluster.check(joined, {}, lambda *_: nodes) == "2 nodes with 4 GPUs or more at head:6379"
    with pytest.raises(UserFault, match=r"the cluster has 1; GPUs by node: 10\.0\.0\.1 8, 10\.0\.0\.3 0"):
        ray_cluster.check(joined, {}, lambda *_: [nodes[0], nodes[2]])


def program(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_living_nodes_are_read_from_what_ray_says() -> None:
    says = (
        'print("a warning\\nNODES [{\\"Alive\\": true, \\"NodeManagerAddress\\": \\"10.0.0.1\\", '
        '\\"Resources\\": {\\"GPU\\": 4.0}}, {\\"Alive\\": false}, '
        '{\\"Alive\\": true, \\"NodeManagerAddress\\": \\"10.0.0.2\\", \\"Resources\\": {}}]")'
    )
    assert ask_nodes("auto", 60, program(says)) == [RayNode("10.0.0.1", 4), RayNode("10.0.0.2", 0)]


def test_a_cluster_that_refuses_or_never_answers_is_one_message() -> None:
    with pytest.raises(UserFault, match="no Ray cluster can be joined: ConnectionError: nobody there") as fault:
        ask_nodes("head:6379", 60, program("raise ConnectionError('nobody there')"))
    assert fault.value.where == "ray.address=head:6379"
    with pytest.raises(UserFault, match=r"no Ray cluster answers within 0\.2 s"):
        ask_nodes("head:6379", 0.2, program("import time; time.sleep(60)"))


def test_ports_are_opened_and_reached_and_an_address_of_another_machine_is_refused() -> None:
    two = site(cluster={"gpus_per_node": 2})
    assert ports.check(two, ["127.0.0.1"]) == "32 ports can be opened and reached on 127.0.0.1"
    with pytest.raises(UserFault, match=r"cannot be opened and reached on 192\.0\.2\.1"):
        ports.check(two, ["192.0.2.1"])


def test_the_disk_must_hold_the_checkpoints_that_are_kept_one_more_and_two_policies(tmp_path: Path) -> None:
    paper = site(policy="Qwen/Qwen3-VL-4B-Thinking", run=str(tmp_path / "run"), checkpoint={"keep": 3})
    assert disk.checkpoint_bytes(paper) == 16 * 4_437_815_808  # weights, two AdamW moments and the copy, 4 bytes each
    assert disk.check(paper, lambda _: 300 * GIB).startswith("300.0 GiB free; 4 checkpoints of 66.13 GiB")
    with pytest.raises(UserFault, match=r"297\.6 GiB are needed, 200\.0 are free: 4 checkpoints of 66\.1 GiB"):
        disk.check(paper, lambda _: 200 * GIB)


def test_what_a_checkpoint_takes_is_what_a_trained_one_took(tmp_path: Path) -> None:
    # measured: global_step_20 of the embedded policy with 1,268,160 weights, 20,525,049 bytes
    tiny = site(platform="cpu", run=str(tmp_path))
    assert disk.checkpoint_bytes(tiny) == pytest.approx(20_525_049, rel=0.05)


def test_checkpoints_that_lie_there_already_need_no_further_room(tmp_path: Path) -> None:
    tiny = site(platform="cpu", run=str(tmp_path), checkpoint={"keep": 1})
    one = disk.checkpoint_bytes(tiny)
    room = one // 2 + 64 * 2**20  # of two policies, logs and rollouts
    with pytest.raises(UserFault, match=r"2 checkpoints of 0\.0 GiB"):  # the next is written before the oldest goes
        disk.check(tiny, lambda _: room + one)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "model.pt").write_bytes(b"0" * one)
    assert disk.check(tiny, lambda _: room + one)


def test_a_policy_folder_without_model_weights_or_processor_is_refused(tmp_path: Path, tiny_policy: Path) -> None:
    assert policy.check(site(policy=str(tiny_policy))).startswith(f"{tiny_policy}: Qwen3VLProcessor, ")
    with pytest.raises(UserFault, match="holds no model"):
        policy.check(site(policy=str(tmp_path)))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserFault, match="holds no weights"):
        policy.check(site(policy=str(tmp_path)))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(UserFault, match="no processor that counts text and pictures"):
        policy.check(site(policy=str(tmp_path)))
    with pytest.raises(NotYet, match="the tiny policy is built when the run starts"):
        policy.check(site(policy=None, run=str(tmp_path / "run")))
