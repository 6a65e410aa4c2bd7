"""A/A noise: a run compared with its repeat at equal settings.

The difference between the two runs comes from chance and from changes of the provider over time.
"""

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
    """Comparison of a run with its A/A repeat.

    Attributes:
        compared: comparison of the run, as the first side, with the repeat.
    """

    run_id: int
    repeat_id: int
    compared: RateComparison


def measure_noise(comparison: Comparison) -> tuple[NoiseMeasurement, ...]:
    """Return the newest A/A comparisons of the runs of both sides, at most MAX_NOISE_PAIRS.

    The intervals are corrected for the number of comparisons. If `comparison` itself compares a run with its repeat, in
    either order, that pair is omitted.
    """
    run_ids = sorted({*comparison.sides[0].run_ids, *comparison.sides[1].run_ids})
    compared_ids = {side.run_ids for side in comparison.sides}
    pairs = [pair for pair in _find_aa_pairs(run_ids) if compared_ids != {(pk,) for pk in pair}][:MAX_NOISE_PAIRS]
    comparisons = apply_bonferroni([compare_runs(first, second, comparison.query) for first, second in pairs])
    return tuple(NoiseMeasurement(*pair, compared) for pair, compared in zip(pairs, comparisons, strict=True))


def _find_aa_pairs(run_ids: list[int]) -> tuple[tuple[int, int], ...]:
    """Return the primary keys of runs and their finished A/A repeats, as pairs, the newest repeat first.

    At least one run of each pair is in `run_ids`, and neither was deleted. At most MAX_NOISE_PAIRS + 1 pairs are
    returned, since `measure_noise` may omit one.
    """
    repeats = Run.objects.filter(
        purpose=NOISE_PURPOSE, state=Run.State.FINISHED, deleted_at=None, repeat_of__deleted_at=None
    )
    pairs = repeats.filter(Q(pk__in=run_ids) | Q(repeat_of__in=run_ids)).order_by("-pk")
    return tuple(
        (run_id, repeat_id)
        for repeat_id, run_id in pairs.values_list("pk", "repeat_of")[: MAX_NOISE_PAIRS + 1]
        if run_id is not None
    )
