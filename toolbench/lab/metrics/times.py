"""Exact quantiles of times over any pool of cells, from the sorted times that are stored beside each cell."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Aggregate, BinaryField

from toolbench.engine.types import JsonObject
from toolbench.evals.statistics.quantiles import Quantile, compute_quantile
from toolbench.lab.models import Cell, CellTimes

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
MIN_LEGACY_P95_ANSWERS = 60  # the older keys and columns of exports have a p95 from so many answers of a scenario on
QUANTILE_PARTS = ("value", "low", "high")
_STORED = np.dtype(">f8")


@dataclass(frozen=True, slots=True)
class Times:
    """Times of trials with an answer, in the form of CellTimes. Merged times need not be sorted."""

    durations: bytes = b""
    first_tokens: bytes = b""

    @property
    def p50(self) -> Quantile | None:
        """Median duration."""
        return _compute_stored_quantile(self.durations, 0.5)

    @property
    def p95(self) -> Quantile | None:
        """95th percentile of the duration."""
        return _compute_stored_quantile(self.durations, 0.95)

    @property
    def p99(self) -> Quantile | None:
        """99th percentile of the duration."""
        return _compute_stored_quantile(self.durations, 0.99)

    @property
    def first_token(self) -> Quantile | None:
        """Median time to the first token of streamed trials."""
        return _compute_stored_quantile(self.first_tokens, 0.5)

    def list_durations(self) -> list[float]:
        """Return the durations in milliseconds."""
        durations: list[float] = np.frombuffer(self.durations, _STORED).tolist()
        return durations


class ConcatenatedTimes(Aggregate):
    """Aggregate that joins the stored times of all cells of a group."""

    function = "string_agg"
    template = "%(function)s(%(expressions)s, ''::bytea)"
    output_field = BinaryField()


def build_time_aggregates(*, first_tokens: bool = True) -> dict[str, Aggregate]:
    """Return the annotations of a grouped query over cells, for `build_times` to read.

    Args:
        first_tokens: whether times to the first token are included.
    """
    found: dict[str, Aggregate] = {"all_durations": ConcatenatedTimes("times__durations")}
    return found | ({"all_first_tokens": ConcatenatedTimes("times__first_tokens")} if first_tokens else {})


def build_times(line: Mapping[str, Any]) -> Times:
    """Return the times of one row of such a query."""
    return Times(bytes(line["all_durations"] or b""), bytes(line.get("all_first_tokens") or b""))


def load_cell_times(cells: Iterable[Cell]) -> Mapping[int, Times]:
    """Return the times of each cell by its id, with one query; a cell without times has empty ones."""
    ids = [cell.pk for cell in cells]
    rows = CellTimes.objects.filter(cell__in=ids).values_list("cell_id", "durations", "first_tokens")
    found = {pk: Times(bytes(durations), bytes(first_tokens)) for pk, durations, first_tokens in rows}
    return {pk: found.get(pk, Times()) for pk in ids}


def merge_times(parts: Iterable[Times]) -> Times:
    """Return the times of all parts together."""
    parts = tuple(parts)
    return Times(b"".join(part.durations for part in parts), b"".join(part.first_tokens for part in parts))


def list_quantile_columns(name: str) -> tuple[str, ...]:
    """Return the columns of a quantile in exports: `p95_ms_value`, `p95_ms_low`, `p95_ms_high`."""
    return tuple(f"{name}_ms_{part}" for part in QUANTILE_PARTS)


def list_quantile_values(found: Quantile | None) -> tuple[float | None, ...]:
    """Return value and bounds in milliseconds.

    An open bound is None, and everything is None without an answer.
    """
    return tuple(None if found is None else getattr(found, part) for part in QUANTILE_PARTS)


def times_to_json(times: Times) -> JsonObject:
    """Return every quantile of durations in the form of exports."""
    found: JsonObject = {}
    for name in QUANTILES:
        found |= zip(list_quantile_columns(name), list_quantile_values(getattr(times, name)), strict=True)
    return found


def find_value_range(
    parts: Iterable[Times], of: Callable[[Times], Quantile | None], *, least: int = 1
) -> tuple[float, float] | None:
    """Return the smallest and the largest value over the parts with `least` answers or more.

    Without such a part it is None.
    """
    values = [value_range.value for value_range in map(of, parts) if value_range is not None and value_range.n >= least]
    return (min(values), max(values)) if values else None


@dataclass(frozen=True, slots=True)
class QuantileRange:
    """A quantile of the fastest and of the slowest of several configurations; the latter is None for a single one."""

    fastest: Quantile
    slowest: Quantile | None


def build_quantile_range(found: Iterable[Quantile | None]) -> QuantileRange | None:
    """Return the range by value, or None without a quantile."""
    ordered = sorted(
        (value_range for value_range in found if value_range is not None), key=lambda value_range: value_range.value
    )
    return QuantileRange(ordered[0], ordered[-1] if len(ordered) > 1 else None) if ordered else None


def _compute_stored_quantile(stored: bytes, q: float) -> Quantile | None:
    return compute_quantile(np.frombuffer(stored, _STORED), q) if stored else None
