"""Pages of scenarios: list, wording, drawn instance and constraints."""

import pytest
from django.test import Client

from tests.page_html import read_html
from toolbench.evals import scenarios

pytestmark = pytest.mark.django_db


def test_scenarios_page_lists_every_scenario(owner_client: Client) -> None:
    text = read_html(owner_client.get("/scenarios/"))
    assert all(scenario.slug in text for scenario in scenarios.list_scenarios())
    assert "A wrong type for <code>ops</code> is refused" in text


@pytest.mark.parametrize("slug", [scenario.slug for scenario in scenarios.list_scenarios()])
def test_scenario_page_shows_wording_and_drawn_instance(owner_client: Client, slug: str) -> None:
    assert "wording</h2>" in read_html(owner_client.get(f"/scenarios/{slug}/"))
    assert "drawn from seed 12" in read_html(owner_client.get(f"/scenarios/{slug}/?seed=12"))


def test_scenario_page_marks_check_of_case_study_only(owner_client: Client) -> None:
    assert "counts only for the case study pass" in read_html(owner_client.get("/scenarios/happy_path/"))
    assert "counts only for" not in read_html(owner_client.get("/scenarios/chat_only/"))


def test_scenario_page_names_keywords_that_constraints_omit(owner_client: Client) -> None:
    text = read_html(owner_client.get("/scenarios/classify_intent/"))
    rows = text.split("What constraints do not enforce")[1].split('row">')
    rows_by_dialect = {row.split("<code>")[1].split("</code>")[0]: row for row in rows if "<code>" in row}
    assert ".properties.confidence.minimum</code> 0" in rows_by_dialect["gbnf"]
    assert ".properties.reasoning.maxLength</code> 80" in rows_by_dialect["strict"]
    assert "nothing" in rows_by_dialect["grammar"]
    assert "What constraints do not enforce" not in read_html(owner_client.get("/scenarios/chat_only/"))


def test_scenario_page_counts_offered_tools_and_names_hidden_one(owner_client: Client) -> None:
    text = read_html(owner_client.get("/scenarios/happy_path/"))
    offered, hidden = text.split('id="tools"')[1].split("Hidden from the model:")
    assert "2 offered" in offered
    assert ("facts_commit" in offered, "facts_commit" in hidden) == (False, True)
    assert "Hidden from the model" not in read_html(owner_client.get("/scenarios/classify_intent/"))


def test_scenario_page_of_unknown_scenario_says_so(owner_client: Client) -> None:
    answer = owner_client.get("/scenarios/unknown_task/")
    assert answer.status_code == 404
    assert "There is no scenario unknown_task" in read_html(answer)
