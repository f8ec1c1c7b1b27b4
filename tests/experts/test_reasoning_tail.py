"""The end of a reasoning that stands in for an empty answer, as the registry's YAML asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from server_doubles import Server, says, servers

from experts.outcome import Delegation, Outcome
from experts.pool import ExpertPool
from registry.registry import Registry

REGISTRY = """
experts:
  Thinker:
    description: Thinks aloud.
    backend: {{type: openai, model: m, replicas: [{{url: "{url}"}}]}}
    sampling: {{max_tokens: 64{more}}}
    deterministic: true
skills:
  Charts:
    description: Reads charts.
    subskills:
      Plain: {{description: Plain., procedure: {{steps: [{{ask: "{{{{ question }}}}"}}]}}}}
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with servers() as (one,):
        one.script = [says(None, "length", reasoning_content="The third bar is the highest one: 17")]
        yield one


def loaded(folder: Path, server: Server, more: str = "") -> Registry:
    file = folder / "registry.yaml"
    file.write_text(REGISTRY.format(url=server.url, more=more))
    return Registry.load(file)


def asked(registry: Registry, cache: Path, reasoning_tail_chars: int = 0) -> Delegation:
    async def main() -> Delegation:
        async with ExpertPool(registry, cache_dir=cache, reasoning_tail_chars=reasoning_tail_chars) as pool:
            return await pool.delegate("Thinker", "Charts", "How high?", ())

    return asyncio.run(main())


def test_an_empty_answer_stays_empty_until_the_registry_lets_its_reasoning_stand_in(tmp_path: Path, server: Server):
    silent = asked(loaded(tmp_path, server), tmp_path / "cache")
    assert (silent.outcome, silent.text) == (Outcome.EMPTY_REPLY, "Thinker gave an empty reply.")
    told = asked(loaded(tmp_path, server, ", reasoning_tail_chars: 11"), tmp_path / "cache")
    assert (told.outcome, told.text) == (Outcome.OK, "est one: 17")
    assert told.note == "the end of the expert's reasoning stands in for an empty answer"
    # The registry's own length counts before the pool's, and an answer that the cache kept is not another's.
    longer = asked(loaded(tmp_path, server, ", reasoning_tail_chars: 2"), tmp_path / "cache", reasoning_tail_chars=5)
    assert (longer.text, longer.cached) == ("17", False)
    pools = asked(loaded(tmp_path, server), tmp_path / "cache", reasoning_tail_chars=6)
    assert (pools.text, pools.cached) == ("ne: 17", False)
    again = asked(loaded(tmp_path, server), tmp_path / "cache")
    assert again.outcome is Outcome.EMPTY_REPLY


def test_a_registry_without_a_tail_keeps_its_digest(tmp_path: Path, server: Server):
    given = ("", ", reasoning_tail_chars: 0", ", reasoning_tail_chars: 9")
    without, off, on = (loaded(tmp_path, server, more) for more in given)
    assert without.digest == off.digest != on.digest
    assert "reasoning_tail_chars" not in without.experts[0].model_dump_json()
