"""The data config: which rows of which data sets make up a training mixture.

The one idea: a source is a benchmark's YAML (which columns mean what) with another split of the same data; what the
mixture needs beyond that, counts and limits, stands here. A field exists because something reads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from registry.names import name_fault
from registry.strict_config import Strict


class Source(Strict):
    """One data set of the mixture."""

    benchmark: str = Field(description="name of a benchmark, or its YAML file, relative to this config")
    rows: int = Field(ge=1, description="training rows")
    validation_rows: int = Field(0, ge=0, description="validation rows, from the same split, of other pictures")
    split: str | None = Field(None, description="split to read; none = the benchmark's own")
    hub: str | None = Field(None, description="id of the data set on the hub; none = the benchmark's")
    config: str | None = Field(None, description="configuration on the hub; none = the benchmark's")
    revision: str | None = Field(None, description="branch or commit on the hub; none = the benchmark's")
    files: tuple[str, ...] = Field((), description="patterns of file names in a local copy; none = the benchmark's")
    data_root: Path | None = Field(None, description="local copy of this source alone, before --data-root")


class Leaks(Strict):
    """What counts as a training row that an evaluation benchmark holds too (paper D.1)."""

    benchmarks: str = Field("all", description="all that come along, or a folder of benchmark YAML files")
    instead: dict[str, str] = Field(default_factory=dict, description="benchmark name: YAML file that is looked at")
    without: tuple[str, ...] = Field((), description="benchmarks that are not looked at; the summary names them")
    picture_bits: int = Field(96, ge=0, le=256, description="bits of 256 in which hashes of one picture may differ")
    correlation: float = Field(0.955, gt=0, le=1, description="least correlation of the thumbnails of one picture")
    text_words: int = Field(20, ge=1, description="words from which a question and its options alone give a row away")


class DataConfig(Strict):
    """One training mixture."""

    name: str = Field(description="name of the mixture")
    out: Path = Field(Path("data/mixture"), description="folder of the files that are written")
    seed: int = Field(0, ge=0, description="seed of which rows are taken, and of their order")
    sources: dict[str, Source] = Field(min_length=1, description="the data sets")
    registry: tuple[str, ...] = Field((), description="registry files or folders of the system prompt; none = embedded")
    prompt_style: Literal["none", "compact", "full"] = Field("compact", description="system prompt from the registry")
    horizon: int = Field(4, ge=1, description="delegations an episode, told in the system prompt (T, paper 4.1)")
    processor: str | None = Field(None, description="the policy's folder or hub id; none = lengths are not measured")
    max_prompt_tokens: int | None = Field(None, ge=1, description="longer prompts are skipped (image tokens included)")
    max_pixels: int = Field(40_000_000, ge=1024, description="pixels of a picture; rows with larger ones are skipped")
    max_images: int = Field(8, ge=1, description="pictures of a row; rows with more are skipped")
    most_faulty: float = Field(0.05, ge=0, le=1, description="share of faulty rows above which a source is given up")
    deadline_s: float = Field(120.0, gt=0, description="seconds to wait for the hub, at the start and between rows")
    leaks: Leaks = Leaks()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _fits_together(self) -> DataConfig:
        for name in self.sources:
            fault = name_fault(name)
            if fault:
                raise ValueError(f"sources: {fault}")
        if self.max_prompt_tokens is not None and self.processor is None:
            raise ValueError("max_prompt_tokens needs 'processor': lengths are measured with the policy's own")
        return self
