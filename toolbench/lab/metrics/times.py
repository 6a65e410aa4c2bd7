"""Exact quantiles of times over any set of cells, from the times that CellTimes stores for each cell."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import Aggregate, BinaryField

from toolbench.engine.types import JsonObject
from toolbench.evals.statistics.quantiles import Quantile, compute_order_statistic, compute_quantile
from toolbench.lab.models import Cell, CellTimes

MIN_LEGACY_P95_ANSWERS = 60  # of a scenario; with fewer, the older keys and columns of exports have no p95
_DURATION_QUANTILES = ("p50", "p95", "p99")  # attributes of Times
_QUANTILE_PARTS = ("value", "low", "high")  # attributes of Quantile
_STORED_TYPE = np.dtype(">f8")  # big-endian float of 8 bytes, as CellTimes stores a time


@dataclass(frozen=True)
class Times:
    """Times of trials with an answer. A quantile is in milliseconds; it is None without times.

    Quantiles are computed once: several metrics and cells of a page show the same ones.

    Attributes:
        durations: durations in milliseconds as big-endian floats of 8 bytes, in any order.
        first_tokens: times to the first token of streamed trials, in the same form.
    """

    durations: bytes = b""
    first_tokens: bytes = b""

    @cached_property
    def p50(self) -> Quantile | None:
        """Median duration."""
        return _compute_stored_quantile(self.durations, 0.5)

    @cached_property
    def p95(self) -> Quantile | None:
        """95th percentile of the duration."""
        return _compute_stored_quantile(self.durations, 0.95)

    @cached_property
    def p99(self) -> Quantile | None:
        """99th percentile of the duration."""
        return _compute_stored_quantile(self.durations, 0.99)

    @cached_property
    def first_token(self) -> Quantile | None:
        """Median time to the first token of streamed trials."""
        return _compute_stored_quantile(self.first_tokens, 0.5)

    def list_durations(self) -> list[float]:
        """Return the durations in milliseconds, in the stored order."""
        durations: list[float] = np.frombuffer(self.durations, _STORED_TYPE).tolist()
        return durations


class ConcatenatedBytes(Aggregate):
    """Aggregate that concatenates the bytes of a binary column over the rows of a group, in any order."""

    function = "string_agg"
    template = "%(function)s(%(expressions)s, ''::bytea)"
    output_field = BinaryField()


def build_time_aggregates(*, first_tokens: bool = True) -> dict[str, Aggregate]:
    """Return the annotations of a grouped query over cells whose rows `build_times` reads.

    Args:
        first_tokens: whether to include times to the first token.
    """
    aggregates: dict[str, Aggregate] = {"all_durations": ConcatenatedBytes("times__durations")}
    return aggregates | ({"all_first_tokens": ConcatenatedBytes("times__first_tokens")} if first_tokens else {})


def build_times(row: Mapping[str, Any]) -> Times:
    """Build the times from a row of a query with the annotations of `build_time_aggregates`."""
    return Times(bytes(row["all_durations"] or b""), bytes(row.get("all_first_tokens") or b""))


def load_cell_times(cells: Iterable[Cell]) -> Mapping[int, Times]:
    """Return the times of each cell by its id, with one query; empty Times for a cell without stored times."""
    ids = [cell.pk for cell in cells]
    rows = CellTimes.objects.filter(cell__in=ids).values_list("cell_id", "durations", "first_tokens")
    times = {pk: Times(bytes(durations), bytes(first_tokens)) for pk, durations, first_tokens in rows}
    return {pk: times.get(pk, Times()) for pk in ids}


def merge_times(parts: Iterable[Times]) -> Times:
    """Return the times of all parts together, one part after the other."""
    parts = tuple(parts)
    if len(parts) == 1:
        return parts[0]
    return Times(b"".join(part.durations for part in parts), b"".join(part.first_tokens for part in parts))


def list_quantile_columns(name: str) -> tuple[str, ...]:
    """Return the names of a quantile's columns in exports, for p95: p95_ms_value, p95_ms_low, p95_ms_high."""
    return tuple(f"{name}_ms_{part}" for part in _QUANTILE_PARTS)


def list_quantile_values(quantile: Quantile | None) -> tuple[float | None, ...]:
    """Return the value, the lower bound and the upper bound of a quantile.

    An open bound is None. Without a quantile, all three are None.
    """
    return tuple(None if quantile is None else getattr(quantile, part) for part in _QUANTILE_PARTS)


def times_to_json(times: Times) -> JsonObject:
    """Return p50, p95 and p99 of the durations, with their bounds, by column in exports."""
    document: JsonObject = {}
    for name in _DURATION_QUANTILES:
        document |= zip(list_quantile_columns(name), list_quantile_values(getattr(times, name)), strict=True)
    return document


def find_value_range(
    parts: Iterable[Times], get_quantile: Callable[[Times], Quantile | None], *, min_answers: int = 1
) -> tuple[float, float] | None:
    """Return the smallest and the largest value of the same quantile over several parts; None without a value.

    Args:
        parts: the times of each part, such as a scenario.
        get_quantile: returns the quantile of a part.
        min_answers: parts with fewer times are left out.
    """
    quantiles = map(get_quantile, parts)
    values = [quantile.value for quantile in quantiles if quantile is not None and quantile.n >= min_answers]
    return (min(values), max(values)) if values else None


@dataclass(frozen=True, slots=True)
class QuantileRange:
    """The smallest and the largest of the same quantile of several configurations.

    Attributes:
        fastest: the quantile with the smallest value.
        slowest: the quantile with the largest value; None if there is only one quantile.
    """

    fastest: Quantile
    slowest: Quantile | None


def find_quantile_range(parts: Iterable[Times], q: float) -> QuantileRange | None:
    """Return the range of a quantile of the durations of each part; None if no part has times.

    Bounds are computed only for the two quantiles that are returned.
    """
    durations = [np.frombuffer(part.durations, _STORED_TYPE) for part in parts if part.durations]
    if not durations:
        return None
    ordered = sorted(durations, key=lambda values: compute_order_statistic(values, q))
    slowest = compute_quantile(ordered[-1], q) if len(ordered) > 1 else None
    return QuantileRange(compute_quantile(ordered[0], q), slowest)


def _compute_stored_quantile(stored: bytes, q: float) -> Quantile | None:
    return compute_quantile(np.frombuffer(stored, _STORED_TYPE), q) if stored else None
