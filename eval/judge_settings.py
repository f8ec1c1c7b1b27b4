"""Which model judges the answers that a rule cannot read, as configuration."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from eval.yaml_config import Strict


class JudgeSettings(Strict):
    """A model behind an OpenAI-compatible server. It is asked only for benchmarks whose file says ``judge: true``, and
    only where their rule reads nothing in an answer."""

    server: str
    """Base URL, for example ``http://localhost:8000/v1``."""
    model: str = Field(min_length=1)
    """The model's name on that server."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the server's key."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Seconds for one try; there are three at most."""

    @field_validator("server")
    @classmethod
    def _is_a_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"{value!r} is no URL like http://localhost:8000/v1")
        return value
