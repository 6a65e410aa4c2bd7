"""The decision page: the rule stands in the address, the answer and every reason on the page."""

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, recompute_all
from toolbench.lab.models import Cell, RunConfig

pytestmark = pytest.mark.django_db


def measured(name: str, passed: int, *, lost: int = 0, millis: float = 1000.0, **run: object) -> RunConfig:
    config = make_config(make_run(**run), make_model(name))
    cell = make_cell(config)
    for number in range(passed):
        make_trial(cell, duration_ms=millis + number)
    for _ in range(lost):
        make_trial(cell, "infra", failure_class="rate_limited")
    recompute_all()
    return config


def test_a_fast_one_that_loses_trials_is_refused_for_delivery(owner_client: Client) -> None:
    measured("vendor/fast", 64, lost=12, millis=100.0)
    measured("vendor/steady", 76)
    text = owner_client.get("/decide/?want=fastest").content.decode()
    assert "Only Example · vendor/steady · default · production · native qualifies." in text
    assert "Refused for delivery: 12 of 76 trials brought no answer (rate_limited × 12)." in text
    assert 'data-reason="delivery"' in text
    kept, refused = text.split('id="refused-title"')
    assert kept.count("on the front") == 1
    assert "on the front" not in refused.split("<table", 1)[1]
    assert "vendor/fast" in refused.split("<table", 1)[1]


def test_the_page_says_why_nothing_is_drawn_and_counts_in_plain_words(owner_client: Client) -> None:
    config = measured("vendor/a", 1)
    Cell.objects.update(saturated=1)
    text = owner_client.get("/decide/").content.decode()
    assert "No configuration has the 60 answers" in text
    assert f">run {config.run_id} · settings" in text
    assert "trials measured while this machine was saturated: 1" in text
    RunConfig.objects.update(provider_kind="local")
    assert "p95 takes no part here, so there is nothing to draw" in owner_client.get("/decide/").content.decode()


@pytest.mark.parametrize(
    "query",
    ["success=x", "within=-1", "run=%00", "scope=all", "want=best", "q=%00", "group=zz", "within=none", "run=7"],
)
def test_no_address_breaks_the_page(owner_client: Client, query: str) -> None:
    measured("vendor/a", 3)
    assert owner_client.get(f"/decide/?{query}").status_code == 200


def test_simulated_configurations_stay_under_demo_and_are_labelled(owner_client: Client) -> None:
    measured("vendor/sim", 3, simulated=True)
    assert "vendor/sim" not in owner_client.get("/decide/").content.decode()
    demo = owner_client.get("/decide/?scope=demo").content.decode()
    assert "Simulated models: nothing here speaks of a real one." in demo
    assert "vendor/sim" in demo
