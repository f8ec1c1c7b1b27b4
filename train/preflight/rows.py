"""Whether the rows can be read, seen, fitted into the prompt's budget, and graded.

One idea: a sample of each file, spread evenly, goes through the same code as in training; nothing else of the file is
decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from registry.errors import UserFault
from train.data.checks import unscorable
from train.data.lengths import PromptLengths
from train.data.row import MixtureRow
from train.preflight.check import NotYet
from train.preflight.site import Site
from train.rows import task_from_row

COLUMNS = ("data_source", "prompt", "images", "reward_model", "extra_info")
_SHOWN = 4
_PREPARE = "write the file with `maestro data prepare`"


def check(site: Site) -> str:
    """Raises UserFault naming the file and its first broken rows; NotYet where the rows are drawn later."""
    data = site.config.data
    if not data.train_files:
        raise NotYet(f"rows of {data.benchmark} are drawn when the run starts")
    if not data.validation_files:
        raise UserFault("data.train_files without data.validation_files", where="data", fix="name both")
    lengths = _lengths(site)
    counts = [_file(Path(file), site, lengths) for file in data.train_files]
    if sum(counts) < site.config.grpo.prompts:
        raise UserFault(
            f"{sum(counts)} training rows are fewer than the {site.config.grpo.prompts} prompts of a step",
            where=", ".join(data.train_files),
            fix="give more rows, or lower grpo.prompts",
        )
    held_out = [_file(Path(file), site, lengths) for file in data.validation_files]
    measured = "" if lengths else "; prompt lengths not measured: the policy is not there yet"
    return (
        f"{sum(counts)} training and {sum(held_out)} validation rows, up to {site.rows} of a file looked at{measured}"
    )


def _lengths(site: Site) -> PromptLengths | None:
    try:
        return PromptLengths(site.processor, site.system)
    except NotYet:
        return None
    except UserFault:
        return None  # told by the check `policy`


def _file(path: Path, site: Site, lengths: PromptLengths | None) -> int:
    """The file's number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    faults: list[str] = []
    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
            if missing:
                raise UserFault(
                    f"no column {', '.join(missing)}; there are {', '.join(file.schema_arrow.names[:20])}",
                    where=str(path),
                    fix=f"{_PREPARE}: verl's RL parquet has {', '.join(COLUMNS)}",
                )
            total = file.metadata.num_rows
            for number, row in _sample(file, site.rows):
                fault = row_fault(row, f"row {number}", path, site, lengths)
                if fault is not None:
                    faults.append(f"row {number}: {fault}")
    except pa.ArrowException as error:  # first: those of a broken file may be OSErrors too
        raise UserFault(f"no readable parquet: {error}", where=str(path), fix=_PREPARE) from error
    except OSError as error:
        text = error.strerror or str(error)
        raise UserFault(f"cannot read the rows: {text}", where=str(path), fix=_PREPARE) from error
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise UserFault(
            f"{len(faults)} of {min(site.rows, total)} rows looked at cannot be trained on: "
            f"{'; '.join(faults[:_SHOWN])}{more}",
            where=str(path),
            fix=f"{_PREPARE}, which lists and leaves out such rows (max_prompt_tokens, max_pixels)",
        )
    return total


def row_fault(row: dict[str, Any], name: str, path: Path, site: Site, lengths: PromptLengths | None) -> str | None:
    """Why a row cannot be trained on, None where it can."""
    try:
        task = task_from_row(row, row.get("images"), name, (path.resolve().parent,))
        placeholders = sum(
            content.count("<image>")
            for message in row.get("prompt") or ()
            if isinstance(content := message.get("content"), str)
        )
    except UserFault as fault:
        return fault.what
    except (AttributeError, TypeError, ValueError) as error:  # columns of other types than verl's
        return f"not of verl's form: {type(error).__name__}: {error}"
    if placeholders != len(task.pictures):
        return f"{placeholders} <image> in the prompt for {len(task.pictures)} pictures"
    truth = task.ground_truth
    answers = (truth,) if isinstance(truth, str) else truth
    if not answers:
        return "no right answer in reward_model.ground_truth"
    extra = {} if len(answers) == 1 else {"answers": list(answers)}
    plain = MixtureRow(
        task.row_id, task.benchmark, task.question, (), answers[0], task.choices, task.group or "", "train", extra
    )
    fault = unscorable(plain)
    if fault is not None or lengths is None:
        return fault
    length, most = lengths.measure(plain, [(p.width, p.height) for p in task.pictures]), site.config.protocol
    if length.total > most.max_prompt_tokens:
        return (
            f"{length.total} prompt tokens, {sum(length.images)} of them for pictures; "
            f"protocol.max_prompt_tokens={most.max_prompt_tokens}"
        )
    return None


def _sample(file: Any, count: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, row) of up to `count` rows, spread evenly; groups of rows that hold none of them are passed over."""
    total = file.metadata.num_rows
    wanted = {index * total // count for index in range(count)} if total > count else set(range(total))
    first = 0
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if any(first <= number < first + size for number in wanted):
            number = first
            for batch in file.iter_batches(batch_size=16, row_groups=[group]):
                for place in range(batch.num_rows):
                    if number + place in wanted:
                        yield number + place, batch.slice(place, 1).to_pylist()[0]
                number += batch.num_rows
        first += size
