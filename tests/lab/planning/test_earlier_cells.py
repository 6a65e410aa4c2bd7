"""Earlier cells that an estimate uses."""

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from toolbench.lab.models import Cell, Model
from toolbench.lab.planning.earlier_cells import MAX_CELLS_PER_KIND, PlannedTrials, find_similar_cells

pytestmark = pytest.mark.django_db


def plan_trials(
    model: Model, scenario: str = "happy_path", *, method: str = "native", strategy: str = ""
) -> PlannedTrials:
    kind, strategy = model.provider.kind, strategy or "production"
    return PlannedTrials(model.pk, model.name, model.provider_id, kind, 8, method, strategy, scenario, 10, 10)


def test_find_similar_cells_prefers_same_model_and_scenario() -> None:
    known, stranger = make_model("known"), make_model("stranger")
    cell = make_cell(make_config(make_run(), known))
    make_trials(cell, **{"pass": 2})
    wanted = [
        plan_trials(known),
        plan_trials(known, strategy="raw"),
        plan_trials(known, "long_arguments_guard"),
        plan_trials(known, method="template"),
        plan_trials(stranger),
        plan_trials(stranger, "weather"),
    ]
    found = find_similar_cells(wanted)
    assert [item and item.description for item in found] == [
        "the same model, scenario, method and strategy",
        "the same model, scenario and method with other strategies",
        "the same model and method, other scenarios",
        "the same model, other methods",
        "other models, the same scenario and method",
        None,
    ]
    other = make_cell(make_config(make_run(), make_model("other")))
    make_trials(other, **{"pass": 2})
    found = find_similar_cells(wanted)
    assert found[1] is not None
    assert found[1].description == "the same model, scenario and method with other strategies, and other models"
    first, second, *_, fifth, _ = (cell and (cell.cells, cell.others) for cell in found)
    assert first == ((cell.pk,), ())
    assert second == ((cell.pk,), (cell.pk, other.pk))
    assert fifth == ((), (cell.pk, other.pk))


def test_find_similar_cells_uses_newest_sent_cells_of_kept_runs() -> None:
    model = make_model()
    cells = []
    for _ in range(MAX_CELLS_PER_KIND + 2):
        cells.append(make_cell(make_config(make_run(), model)))
        make_trials(cells[-1], **{"pass": 1})
    make_cell(make_config(make_run(), model))
    cells[-1].run.deleted_at = cells[-1].run.created_at
    cells[-1].run.save()
    (found,) = find_similar_cells([plan_trials(model)])
    assert found is not None
    assert found.cells == tuple(cell.pk for cell in reversed(cells[1:-1]))


def test_find_similar_cells_skips_cells_without_results() -> None:
    model = make_model()
    tried, started = (make_cell(make_config(make_run(), model)) for _ in range(2))
    make_trials(tried, **{"pass": 1})
    Cell.objects.filter(pk=started.pk).update(requests=3)
    (found,) = find_similar_cells([plan_trials(model)])
    assert found is not None
    assert found.cells == (tried.pk,)
