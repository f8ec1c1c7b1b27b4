"""`Launch`: how one server is started: its command line for a port, its environment, what it must answer for."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experts.serving.model import ServedModel
from experts.serving.placement import Placed
from experts.serving.ports import FIRST_PORT, HOST
from registry.errors import UserFault

NOWHERE = "media.invalid"  # a name that is reserved never to exist


@dataclass(frozen=True)
class Launch:
    """A server that can be started. `words` is its command line, in which `PORT` stands for the port; where it does
    not, the server's port is fixed by something else and `wanted_port` is what it will be.

    devices: what it is loaded onto; servers that share one are started one after the other. health: the path that
    says 200 when it is up. polite: the signal that asks it to end.
    """

    name: str
    models: tuple[ServedModel, ...]
    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    wanted_port: int = FIRST_PORT
    health: str = "/health"
    polite: int = signal.SIGTERM

    PORT = "{port}"

    @property
    def port_is_fixed(self) -> bool:
        """Whether it would listen at `wanted_port` whatever we choose."""
        return self.PORT not in self.words

    def command(self, port: int) -> tuple[str, ...]:
        """The command line for that port."""
        return tuple(str(port) if word == self.PORT else word for word in self.words)

    def shell(self, port: int) -> str:
        """The same for a shell, environment included."""
        settings = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*settings, shlex.join(self.command(port))])

    def secrets(self) -> dict[str, str]:
        """What else goes into the environment and is never printed. Raises UserFault for a key not set."""
        name = self.models[0].api_key_env
        if name is None:
            return {}
        if not os.environ.get(name):
            raise UserFault(
                f"{self.name} is to be protected by a key, but the variable {name} is not set",
                fix=f"export {name}=..., or take `api_key_env` out of the registry",
            )
        return {"VLLM_API_KEY": os.environ[name]}


def program(name: str, fix: str, *, needed: bool = True) -> str:
    """The path of a command: as given, beside this Python, or the first on the PATH. Raises UserFault when it is
    needed and there is none."""
    beside = str(Path(sys.executable).parent / name)
    found = shutil.which(name) if "/" in name else shutil.which(beside) or shutil.which(name)
    if found is None and needed:
        raise UserFault(f"there is no program {name!r}", fix=fix)
    return found or name


def vllm_launch(server: Placed, vllm: str) -> Launch:
    """`vllm serve` for one placed model; on the host's processors when its device is no GPU."""
    model, cpu = server.model, server.gpus[0].index is None
    folder = model.folder
    words = [
        *(vllm, "serve", str(folder or model.source), "--served-model-name", model.id),
        *("--host", HOST, "--port", Launch.PORT),
        *("--max-model-len", str(model.context_tokens)),
        # Without the second half, room is kept for a whole film.
        *("--limit-mm-per-prompt", json.dumps({"image": model.max_images, "video": 0})),
        # Pictures come inside requests; a server must not be made to fetch addresses of this network.
        *("--allowed-media-domains", NOWHERE),
        "--disable-uvicorn-access-log",
    ]
    if model.serving.tensor_parallel > 1:
        words += ["--tensor-parallel-size", str(model.serving.tensor_parallel)]
    if model.trust_remote_code:
        words.append("--trust-remote-code")
    env = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if folder is not None:
        env["HF_HUB_OFFLINE"] = "1"
    if cpu:
        words += _CPU_WORDS
        env |= _CPU_ENV | {
            "VLLM_CPU_KVCACHE_SPACE": str(max(1, math.ceil(server.memory.cache_gib))),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count() or 1),
        }
    else:
        words += ["--gpu-memory-utilization", f"{server.fraction:.3f}"]
        env |= {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the driver's own numbers
            "CUDA_VISIBLE_DEVICES": ",".join(str(gpu.index) for gpu in server.gpus),
        }
    wanted = model.ports[min(server.copy, len(model.ports) - 1)] if model.ports else FIRST_PORT
    return Launch(
        name=model.id if model.serving.replicas == 1 else f"{model.id}#{server.copy + 1}",
        models=(model,),
        words=(*words, *model.serving.extra_args),
        env=env,
        devices=tuple(gpu.label for gpu in server.gpus),
        wanted_port=wanted,
    )


# What vLLM's CPU build needs or gains from (docs/serving.md).
_CPU_WORDS: Sequence[str] = (
    *("--dtype", "float32", "--enforce-eager", "--block-size", "32", "--max-num-seqs", "16"),
    *("--skip-mm-profiling", "--distributed-executor-backend", "uni"),
)
_CPU_ENV = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # lets the engine work in its own process instead of a child of it
    "KMP_BLOCKTIME": "0",
    "TOKENIZERS_PARALLELISM": "false",
}
