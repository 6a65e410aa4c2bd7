"""Search for earlier cells that are similar to planned ones, for estimates.

The closest kind of similarity is used: first the same model, scenario, method and strategy, then wider matches.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from toolbench.evals.prices import Price
from toolbench.lab.models import Cell

MAX_CELLS_PER_KIND = 5  # newest cells that are used for each kind of similarity
_MAX_CELLS_READ = 1000  # by each of the two queries: by model, and by scenario
_KIND_DESCRIPTIONS = (
    "the same model, scenario, method and strategy",
    "the same model, scenario and method with other strategies",
    "the same model and method, other scenarios",
    "the same model, other methods",
    "other models, the same scenario and method",
)
MatchKey = tuple[object, ...]
"""Short name of a kind of similarity, and the values that are equal in all its cells, such as ("model", 3)."""


@dataclass(frozen=True, slots=True)
class PlannedTrials:
    """Planned trials of one cell.

    Attributes:
        model: id of the model.
        provider: id of the provider.
        kind: kind of the provider.
        scenario: slug of the scenario.
        max_concurrency: concurrency limit of the provider.
        min_trials: minimum number of trials.
        max_trials: maximum number of trials.
        requests: minimum and maximum number of requests of one trial; None if they were not computed.
        price: the price of the model; None if it is unknown.
        may_cost: whether its requests may cost money.
    """

    model: int
    model_name: str
    provider: int
    kind: str
    max_concurrency: int
    method: str
    strategy: str
    scenario: str
    min_trials: int
    max_trials: int
    requests: tuple[int, int] | None = None
    price: Price | None = None
    may_cost: bool = True

    def build_keys(self) -> tuple[MatchKey, ...]:
        """Return one key for each kind of similarity, the closest first."""
        return _build_keys(self.model, self.kind, self.method, self.strategy, self.scenario)


@dataclass(frozen=True, slots=True)
class SimilarCells:
    """Earlier cells that are similar to a planned cell.

    Attributes:
        cells: ids of the newest cells of the closest kind of similarity; () if only cells of other models are similar.
        description: the closest kind in words.
        others: ids of cells with the same provider kind, scenario and method: the newest cell of each of up to
            MAX_CELLS_PER_KIND models, perhaps of the planned model too. () unless the closest kind is that of other
            strategies or that of other models, and one of these cells is not in `cells`.
    """

    cells: tuple[int, ...]
    description: str
    others: tuple[int, ...] = ()


def find_similar_cells(planned: Sequence[PlannedTrials]) -> tuple[SimilarCells | None, ...]:
    """Find similar cells for each planned cell, with one or two queries of up to _MAX_CELLS_READ cells.

    The second query reads cells of any model. It is sent only if a planned cell has no earlier cell with the same
    model, scenario, method and strategy. For similarity between models, only the newest cell of each model is used.

    Returns:
        The similar cells in the order of the planned cells; None for a planned cell without any.
    """
    newest: dict[MatchKey, list[int]] = defaultdict(list)
    used_keys: set[tuple[MatchKey, object]] = set()
    for cells in (_filter_by_models(planned), _filter_by_scenarios(planned)):
        for cell_id, model, *identity in _iter_newest(cells):
            for key in _build_keys(model, *identity):
                cell_key = (key, model if key[0] == "others" else cell_id)
                if len(newest[key]) < MAX_CELLS_PER_KIND and cell_key not in used_keys:
                    used_keys.add(cell_key)
                    newest[key].append(cell_id)
        if all(newest.get(trials.build_keys()[0]) for trials in planned):
            break
    return tuple(_find_closest(trials, newest) for trials in planned)


def _find_closest(trials: PlannedTrials, newest: dict[MatchKey, list[int]]) -> SimilarCells | None:
    """Return the similar cells of the closest kind; None if there are no similar cells.

    With another strategy, trials may stop earlier. So if the model has only cells of other strategies, cells of other
    models are added.
    """
    keys = trials.build_keys()
    others = tuple(newest.get(keys[-1], ()))
    for key, description in zip(keys, _KIND_DESCRIPTIONS, strict=True):
        cells = tuple(newest.get(key, ()))
        if cells and key[0] == "others":
            return SimilarCells((), description, others)
        if cells and key[0] == "strategy" and not set(others) <= set(cells):
            return SimilarCells(cells, f"{description}, and other models", others)
        if cells:
            return SimilarCells(cells, description)
    return None


def _build_keys(
    model: object, provider_kind: object, method: object, strategy: object, scenario: object
) -> tuple[MatchKey, ...]:
    """Return one key for each kind of similarity, in the order of _KIND_DESCRIPTIONS."""
    return (
        ("same", model, method, strategy, scenario),
        ("strategy", model, method, scenario),
        ("method", model, method),
        ("model", model),
        ("others", provider_kind, method, scenario),
    )


def _filter_by_models(planned: Sequence[PlannedTrials]) -> QuerySet[Cell]:
    """Return the cells of the planned models."""
    return Cell.objects.filter(config__model_id__in={trials.model for trials in planned})


def _filter_by_scenarios(planned: Sequence[PlannedTrials]) -> QuerySet[Cell]:
    """Return the cells of any model with a planned scenario and a planned kind of provider."""
    scenarios, kinds = {trials.scenario for trials in planned}, {trials.kind for trials in planned}
    return Cell.objects.filter(scenario__in=scenarios, config__provider_kind__in=kinds)


def _iter_newest(cells: QuerySet[Cell]) -> Iterator[tuple[int, object, object, object, object, object]]:
    """Yield up to _MAX_CELLS_READ of these cells, newest first, without cells of deleted and imported runs.

    Only cells are yielded that sent a request and have a trial that passed, failed or had an infrastructure error.

    Yields:
        Id of the cell, id of the model, provider kind, method, strategy, scenario.
    """
    has_results = Q(passed__gt=0) | Q(failed__gt=0) | Q(infra__gt=0)
    usable = cells.filter(has_results, run__deleted_at=None, run__imported=False, requests__gt=0).order_by("-pk")
    columns = ("pk", "config__model_id", "config__provider_kind", "config__method", "config__strategy", "scenario")
    yield from usable.values_list(*columns)[:_MAX_CELLS_READ]
