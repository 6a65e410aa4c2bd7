"""Earlier cells that are similar to planned ones.

Cells of the same model, scenario, method and strategy come first, then wider matches.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolbench.evals.prices import Price
from toolbench.lab.models import Cell

MAX_CELLS_PER_KIND = 5  # cells that a forecast stands on, of each kind
_MAX_CELLS_READ = 1000  # the newest cells of these models, and of these scenarios
_KIND_DESCRIPTIONS = (
    "the same model, scenario, method and strategy",
    "the same model, scenario and method under other strategies, beside other models",
    "the same model and method, other scenarios",
    "the same model, other methods",
    "other models, the same scenario and method",
)
MatchKey = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class PlannedTrials:
    """Planned trials of one cell.

    Attributes:
        least, most: their number.
        max_concurrency: simultaneous trials at the provider.
        requests: the fewest and the most that one trial may send; None where it was not computed.
        price: the price that a person set for the model; None for the list price.
        may_cost: whether its requests may cost money.
    """

    model: int | None
    model_name: str
    provider: int
    kind: str
    template: str
    max_concurrency: int
    method: str
    strategy: str
    scenario: str
    least: int
    most: int
    requests: tuple[int, int] | None = None
    price: Price | None = None
    may_cost: bool = True

    def keys(self) -> tuple[MatchKey, ...]:
        """Return the keys of similar cells, from the closest to the widest."""
        return _build_keys(self.model, self.kind, self.method, self.strategy, self.scenario)


@dataclass(frozen=True, slots=True)
class SimilarCells:
    """The newest cells of the closest kind that exists, and this kind. `others` are cells of other models."""

    cells: tuple[int, ...]
    description: str
    others: tuple[int, ...] = ()


def find_similar_cells(planned: Sequence[PlannedTrials]) -> tuple[SimilarCells | None, ...]:
    """Return similar cells for each planned cell, in order, with two queries; None where there are none.

    Of other models, the newest cell of each is used.
    """
    newest: dict[MatchKey, list[int]] = defaultdict(list)
    there: set[tuple[MatchKey, object]] = set()
    for cell_id, model, *identity in _iter_cells(planned):
        for key in _build_keys(model, *identity):
            cell_key = (key, model if key[0] == "others" else cell_id)
            if len(newest[key]) < MAX_CELLS_PER_KIND and cell_key not in there:
                there.add(cell_key)
                newest[key].append(cell_id)
    return tuple(_find_closest(trials, newest) for trials in planned)


def _find_closest(trials: PlannedTrials, newest: dict[MatchKey, list[int]]) -> SimilarCells | None:
    """Return the closest similar cells.

    Cells of another strategy may stop where this one continues, so cells of other models are added to the range.
    """
    keys = trials.keys()
    others = tuple(newest.get(keys[-1], ()))
    for key, words in zip(keys, _KIND_DESCRIPTIONS, strict=True):
        if cells := tuple(newest.get(key, ())):
            return SimilarCells(
                () if key is keys[-1] else cells, words, others if key[0] in ("strategy", "others") else ()
            )
    return None


def _build_keys(
    model: object, kind: object, method: object, strategy: object, scenario: object
) -> tuple[MatchKey, ...]:
    """Return keys from the closest to the widest."""
    return (
        ("same", model, method, strategy, scenario),
        ("strategy", model, method, scenario),
        ("method", model, method),
        ("model", model),
        ("others", kind, method, scenario),
    )


def _iter_cells(planned: Sequence[PlannedTrials]) -> Iterator[tuple[int, object, object, object, object, object]]:
    """Yield cells, the newest first, of these models and then of these scenarios."""
    tried = Cell.objects.filter(run__deleted_at=None, run__imported=False, requests__gt=0).order_by("-pk")
    named = ("pk", "config__model_id", "config__provider_kind", "config__method", "config__strategy", "scenario")
    models = {trials.model for trials in planned if trials.model is not None}
    yield from tried.filter(config__model_id__in=models).values_list(*named)[:_MAX_CELLS_READ]
    scenarios, kinds = {trials.scenario for trials in planned}, {trials.kind for trials in planned}
    wider = tried.filter(scenario__in=scenarios, config__provider_kind__in=kinds)
    yield from wider.values_list(*named)[:_MAX_CELLS_READ]
