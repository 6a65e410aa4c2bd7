import pytest

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, recompute_stale_cells
from toolbench.lab.management.eval.options import EvalOptions
from toolbench.lab.management.eval.providers import update_openrouter


@pytest.mark.django_db
@pytest.mark.parametrize(("variable", "stale"), [("OPENROUTER_BASE_URL", True), ("OPENROUTER_X_TITLE", False)])
def test_update_openrouter_with_other_address_marks_cells(variable: str, stale: bool) -> None:
    cell = make_cell(make_config(make_run(), make_model(provider=make_provider(template="openrouter"))))
    recompute_stale_cells()
    assert update_openrouter({"OPENROUTER_API_KEY": "key", variable: "http://127.0.0.1:8000"}, EvalOptions())
    cell.refresh_from_db()
    assert cell.stale == stale


@pytest.mark.django_db
@pytest.mark.parametrize(("words", "is_changed"), [("!local", True), ("all,!openrouter", False), ("ALL", True)])
def test_update_openrouter_follows_the_filter_of_providers(words: str, is_changed: bool) -> None:
    make_provider(template="openrouter")
    environment = {"OPENROUTER_API_KEY": "key", "OPENROUTER_X_TITLE": "Mine", "OPENROUTER_BASE_URL": " "}
    assert bool(update_openrouter(environment, EvalOptions(provider=words))) == is_changed
