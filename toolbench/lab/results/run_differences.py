"""Runs of one configuration whose success differs by more than chance, so that pooling them may mislead.

Such a difference comes from a change that the frozen settings do not show: of the endpoint, its model or its load.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain
from typing import Any

from django.db.models import F
from django.db.models.expressions import Combinable

from toolbench.evals.statistics.differences import ALPHA, Stratum, compute_exact_p
from toolbench.lab.metrics.pools import CONFIG_FIELDS, CONFIRMATION_PURPOSE, render_config_label
from toolbench.lab.metrics.tally import REPEATING
from toolbench.lab.models import Cell

MAX_CELLS = 1_000  # of all sides together; the newest cells are compared
MAX_LISTED_RUNS = 4
MAX_SENTENCES = 3
_TRIED = F("passed") + F("failed") + F("infra")
_ANSWERED = F("passed") + F("failed") - F("deadline_failed")
# Successes and trials of a cell, by success metric.
_COUNTS: Mapping[str, tuple[Combinable, Combinable]] = {
    "given": (F("passed"), _ANSWERED),
    "delivered": (F("passed") - F("late_passes"), _TRIED),
    "first": (F("first_attempt_passed"), _ANSWERED),
}
_CONFIG_COLUMNS = tuple(f"config__{name}" for name in CONFIG_FIELDS)
ConfigKey = tuple[Any, ...]  # values of CONFIG_FIELDS and the instance kind
ScenarioKey = tuple[str, int]  # scenario and its version
RunCells = dict[ScenarioKey, tuple[int, int]]  # successes and trials by scenario


@dataclass(frozen=True, slots=True)
class RunDifference:
    """Runs of one configuration that differ.

    Attributes:
        label: name of the configuration.
        config: values of CONFIG_FIELDS and the instance kind.
        runs: (run id, successes, trials) of each run, counted in the scenarios that another run has too, in the order
            of the ids. Of more than MAX_LISTED_RUNS runs, only those with the lowest and the highest success.
    """

    label: str
    config: ConfigKey
    runs: tuple[tuple[int, int, int], ...]

    @property
    def runs_text(self) -> str:
        """Return the runs with their counts, such as "run 2 0/32, run 3 32/32"."""
        return ", ".join(f"run {pk} {successes:,}/{trials:,}" for pk, successes, trials in self.runs)


def find_run_differences(sides: Sequence[Iterable[int]], metric: str) -> tuple[RunDifference, ...]:
    """Return the configurations whose runs differ by more than chance, with at most one query.

    Each run is compared with the other runs of its configuration in the same scenarios, by the exact test. The p-values
    are corrected for the number of comparisons (Bonferroni). Controls, confirmation runs, cells with sequential
    stopping and cells with repeated answers are left out.

    Args:
        sides: ids of the cells of each side; at least one side. Runs are compared only within a side. Each side has an
            equal part of MAX_CELLS; if it has more cells, only the newest ones count.
        metric: a key of SUCCESS_METRICS.
    """
    runs_by_side = _read_runs([frozenset(nlargest(MAX_CELLS // len(sides), cell_ids)) for cell_ids in sides], metric)
    compared = {key: list(_iter_strata(runs)) for key, runs in runs_by_side.items() if len(runs) > 1}
    comparison_count = sum(map(len, compared.values()))
    return tuple(
        RunDifference(render_config_label(dict(zip(CONFIG_FIELDS, config, strict=False))), config, _list_runs(runs))
        for (side, config), runs in runs_by_side.items()
        if any(comparison_count * compute_exact_p(strata) <= ALPHA for strata in compared.get((side, config), ()))
    )


def describe_run_differences(differences: Sequence[RunDifference]) -> tuple[str, ...]:
    """Return a sentence for each of the first MAX_SENTENCES configurations, and one about the others."""
    sentences = [
        f"{difference.label}: its runs differ by more than chance ({difference.runs_text}). The endpoint, its model or "
        "its load may have changed between them: choose runs that belong together."
        for difference in differences[:MAX_SENTENCES]
    ]
    other_count = len(differences) - MAX_SENTENCES
    more = [f"Runs of other configurations differ by more than chance too: {other_count}."] if other_count > 0 else []
    return (*sentences, *more)


def _read_runs(sides: Sequence[Collection[int]], metric: str) -> Mapping[tuple[int, ConfigKey], Mapping[int, RunCells]]:
    """Return the counts of each run by its id, for each pair of the index of a side and a configuration."""
    successes, trials = _COUNTS[metric]
    cells = Cell.objects.filter(pk__in={pk for side in sides for pk in side}, control=False, error=None)
    cells = cells.exclude(REPEATING).exclude(run__purpose=CONFIRMATION_PURPOSE)
    columns = ("pk", *_CONFIG_COLUMNS, "instance_kind", "run_id", "scenario", "scenario_version")
    rows = cells.order_by("pk").values_list(*columns, successes, trials)
    runs_by_side: dict[tuple[int, ConfigKey], dict[int, RunCells]] = defaultdict(lambda: defaultdict(dict))
    for pk, *config, run_id, scenario, version, cell_successes, cell_trials in rows:
        for side in (index for index, cell_ids in enumerate(sides) if cell_trials and pk in cell_ids):
            counts = runs_by_side[side, tuple(config)][run_id]
            before = counts.get((scenario, version), (0, 0))
            counts[scenario, version] = (before[0] + cell_successes, before[1] + cell_trials)
    return runs_by_side


def _iter_strata(runs: Mapping[int, RunCells]) -> Iterator[list[Stratum]]:
    """Yield the strata of each comparison of a run with the other runs; two runs need only one comparison.

    Scenarios in which all trials, or none, were successes are left out: they do not change the p-value.
    """
    totals: dict[ScenarioKey, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for cells in runs.values():
        for key, (successes, trials) in cells.items():
            totals[key] = (totals[key][0] + successes, totals[key][1] + trials)
    for run in list(runs)[: 1 if len(runs) == 2 else None]:
        strata = [
            Stratum(totals[key][0] - successes, totals[key][1] - trials, successes, trials)
            for key, (successes, trials) in runs[run].items()
            if 0 < totals[key][0] < totals[key][1]
        ]
        yield [stratum for stratum in strata if stratum.is_comparable]


def _list_runs(runs: Mapping[int, RunCells]) -> tuple[tuple[int, int, int], ...]:
    """Return the runs as `RunDifference.runs` has them."""
    scenarios = Counter(chain.from_iterable(runs.values()))
    shared = {run: [counts for key, counts in cells.items() if scenarios[key] > 1] for run, cells in runs.items()}
    sums = sorted((run, *_add_counts(counts)) for run, counts in shared.items() if counts)
    if len(sums) <= MAX_LISTED_RUNS:
        return tuple(sums)
    by_success = sorted(sums, key=lambda counts: counts[1] / counts[2])
    return tuple(sorted((by_success[0], by_success[-1])))


def _add_counts(counts: Collection[tuple[int, int]]) -> tuple[int, int]:
    return sum(successes for successes, _ in counts), sum(trials for _, trials in counts)
