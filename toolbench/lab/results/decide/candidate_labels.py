"""Labels of candidates, which tell apart most candidates with the same name."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from toolbench.lab.metrics.pools import SumRow, render_config_label
from toolbench.lab.results.compare.query import INSTANCE_KIND_LABELS
from toolbench.lab.results.decide.candidate_context import CANDIDATE_KEY


def build_candidate_labels(rows: Iterable[SumRow]) -> Mapping[tuple[Any, ...], str]:
    """Return the label of each candidate, by the values of CANDIDATE_KEY.

    A label is the name of the candidate. The instance kind or the tool-use mode follows if candidates with this name
    differ in it. Labels of candidates that differ only in frozen settings are equal.

    Args:
        rows: the sums of all candidates.
    """
    row_by_key = {tuple(row[name] for name in CANDIDATE_KEY): row for row in rows}
    kinds_by_name: dict[str, set[str]] = defaultdict(set)
    modes_by_name: dict[str, set[str]] = defaultdict(set)
    for row in row_by_key.values():
        kinds_by_name[render_config_label(row)].add(row["instance_kind"])
        modes_by_name[render_config_label(row)].add(row["tool_use_mode"])
    labels = {}
    for key, row in row_by_key.items():
        name, kind = render_config_label(row), row["instance_kind"]
        parts = [
            name,
            INSTANCE_KIND_LABELS.get(kind, kind) if len(kinds_by_name[name]) > 1 else "",
            f"tool use {row['tool_use_mode']}" if len(modes_by_name[name]) > 1 else "",
        ]
        labels[key] = " · ".join(filter(None, parts))
    return labels
