"""BFCL-V4 with the orchestrator as its model: registers `maestro-FC`, then runs BFCL's own command line.

    MAESTRO_URL=http://127.0.0.1:8765/v1 python -m eval.agentic.bfcl_adapter generate --model maestro-FC \\
        --test-category simple_python,multi_turn_base --num-threads 8
    python -m eval.agentic.bfcl_adapter evaluate --model maestro-FC --test-category simple_python,multi_turn_base

Runs in BFCL's environment, whose packages do not go together with ours, and so imports nothing of ours. Requests,
decoding and scoring are BFCL's (`OpenAICompletionsHandler`, function-calling mode). BFCL imports the libraries of all
vendors that it knows before it does anything; where one is missing its table of models is replaced by one that holds
`maestro-FC` alone, so that a small environment (constraints/bfcl.txt) is enough.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

MODEL = "maestro-FC"
DEFAULT_URL = "http://127.0.0.1:8765/v1"
_TABLE = "bfcl_eval.constants.model_config"


def register() -> None:
    """Puts `maestro-FC` into BFCL's table of models. Raises SystemExit with a plain message where BFCL is absent."""
    try:
        import bfcl_eval  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        sys.exit(
            "error: bfcl-eval is not installed here\n  fix: pip install --constraint constraints/bfcl.txt bfcl-eval"
        )
    try:
        import importlib

        table = importlib.import_module(_TABLE)
    except ImportError as error:
        print(f"note: BFCL's own table of models needs more packages ({error}); only {MODEL} is known", file=sys.stderr)
        for name in [name for name in sys.modules if name.startswith(_TABLE)]:
            del sys.modules[name]
        table = types.ModuleType(_TABLE)
        table.MODEL_CONFIG_MAPPING = {}  # type: ignore[attr-defined]
        sys.modules[_TABLE] = table
    table.MODEL_CONFIG_MAPPING[MODEL] = _config()


def _config() -> Any:
    """The fields of BFCL's ModelConfig. In its OpenAI requests BFCL writes `_` for the dots in names of functions."""
    return types.SimpleNamespace(
        model_name=os.environ.get("MAESTRO_MODEL", "maestro"),
        display_name="Maestro (FC)",
        url=_url(),
        org="local",
        license="local",
        model_handler=_handler(),
        input_price=None,
        output_price=None,
        is_fc_model=True,
        underscore_to_dot=True,
    )


def _handler() -> type:
    from bfcl_eval.model_handler.api_inference.openai_completion import (  # pyright: ignore[reportMissingImports]
        OpenAICompletionsHandler,
    )

    class MaestroHandler(OpenAICompletionsHandler):
        """BFCL's handler, sent to our address and never to OpenAI's by accident."""

        def _build_client_kwargs(self) -> dict[str, Any]:
            key = os.environ.get("MAESTRO_API_KEY", "none")
            return {"base_url": _url(), "api_key": key, "timeout": 900.0, "max_retries": 5}

    return MaestroHandler


def _url() -> str:
    return os.environ.get("MAESTRO_URL", DEFAULT_URL)


def main() -> None:
    """BFCL's command line with one model more."""
    register()
    from bfcl_eval.__main__ import cli  # pyright: ignore[reportMissingImports]

    cli()


if __name__ == "__main__":
    main()
