"""The A/A noise floor: the same settings against themselves, once more. What differs there is chance and weather."""

from dataclasses import dataclass

from django.db.models import Q

from toolbench.lab.models import Run
from toolbench.lab.results.compare.comparison import Comparison, compare_runs
from toolbench.lab.results.compare.secondary_metrics import apply_bonferroni
from toolbench.lab.results.compare.statistics import RateComparison
from toolbench.lab.runs.repeat import NOISE_PURPOSE

MAX_NOISE_PAIRS = 2


@dataclass(frozen=True, slots=True)
class NoiseMeasurement:
    first: int
    second: int
    compared: RateComparison


def measure_noise(page: Comparison) -> tuple[NoiseMeasurement, ...]:
    """Of the runs on either side, the newest; without the comparison that is shown itself."""
    runs = sorted({*page.sides[0].run_ids, *page.sides[1].run_ids})
    shown = (page.sides[0].run_ids, page.sides[1].run_ids)
    pairs = [pair for pair in find_aa_pairs(runs) if shown != ((pair[0],), (pair[1],))][:MAX_NOISE_PAIRS]
    found = apply_bonferroni([compare_runs(first, second, page.query) for first, second in pairs])
    return tuple(NoiseMeasurement(*pair, one) for pair, one in zip(pairs, found, strict=True))


def find_aa_pairs(runs: list[int]) -> tuple[tuple[int, int], ...]:
    """A run and its A/A repeat, finished both, for every one of these runs that is either."""
    again = Run.objects.filter(
        purpose=NOISE_PURPOSE, state=Run.State.FINISHED, deleted_at=None, repeat_of__deleted_at=None
    )
    found = again.filter(Q(pk__in=runs) | Q(repeat_of__in=runs)).order_by("-pk")
    return tuple(
        (first, pk) for pk, first in found.values_list("pk", "repeat_of")[: MAX_NOISE_PAIRS + 1] if first is not None
    )
