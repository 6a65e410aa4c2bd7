"""Addresses of 23 November 2026, before results became one workspace: each still shows the same trials or order.

Reports, bundles and links of people contain such addresses. docs/addresses.md has the table.
"""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_step,
    make_trial,
    make_trials,
    recompute_stale_cells,
)
from tests.page_html import read_html
from tests.site_addresses import NAMED
from toolbench.lab.models import Provider, Trial
from toolbench.lab.traces.search_text import update_search_texts

pytestmark = pytest.mark.django_db

WRONG_CITY = {"code": "wrong_argument", "path": "$.cities[0]", "turn": 1}
# Old filters, each with the trials that it showed.
FILTERS = {
    "run={run}": "odd",
    "runs={run}": "odd",
    "cell={cell}": "odd",
    "cells={cell}": "odd",
    "cells=1-999999999": "odd even simulated imported",
    "config={config}": "odd",
    "group=weather": "odd",
    "scenario=weather": "odd",
    "version=2": "odd",
    "without=weather@2": "even",
    "outcome=fail": "odd",
    "outcome=pass": "even",
    "provider=Second": "odd",
    "provider_kind=local": "odd",
    "model=vendor/odd": "odd",
    "profile=cool": "odd",
    "strategy=raw": "odd",
    "method=text_json": "odd",
    "examples=few": "odd",
    "examples=none": "even",
    "tool_use_mode=strict": "odd",
    "instance_kind=drawn": "odd",
    "stream=streamed": "odd",
    "stream=whole": "even",
    "prompt=p2": "odd",
    "failure_class=wrong_arguments": "odd",
    "signature=wrong_arguments weather": "odd",
    "cause=wrong_argument": "odd",
    "cluster=wrong_argument $.cities[]": "odd",
    "cause_version=3": "odd",
    "seen=wrong_argument": "odd",
    "path=$.cities[]": "odd",
    "seen=wrong_argument&path=$.cities[]": "odd",
    "had=retry": "odd",
    "label=night": "odd",
    "search=Atlantis": "odd",
    "demo=1": "simulated",
    "imported=1": "imported",
    "scope=all": "odd even simulated imported",
    "model=vendor/odd&outcome=pass": "",
    "sort=failed": "odd even",
    "sort=order": "odd even",
    "sort=slow": "odd even",
}
PATHS = (
    "", "compare/", "compare/export.<sheet:kind>", "decide/", "decide/records/", "decide/recommendations/", "demo/",
    "failures/", "families/", "formats/", "imported/", "latency/", "matrix/", "matrix/export.<sheet:kind>", "metrics/",
    "models/", "models/<int:model_id>/", "policy/", "presets/", "probes/<int:probe_id>/", "profiles/", "providers/",
    "runs/", "runs/<int:run_id>/", "runs/<int:run_id>/judgements/", "runs/<int:run_id>/metrics/",
    "runs/<int:run_id>/report.zip", "runs/<int:run_id>/trials.<table:kind>", "runs/new/", "scenarios/",
    "scenarios/<slug:slug>/", "trials/", "trials/<int:trial_id>/", "what-if/",
)  # fmt: skip


@pytest.fixture
def trials() -> dict[str, Trial]:
    """One trial that differs from the others in every filtered value, and one of each kind of run, by name."""
    local = make_provider("Second", kind=Provider.Kind.LOCAL)
    settings_ = {"profile": "cool", "strategy": "raw", "method": "text_json", "examples": "few", "stream": True}
    odd_config = make_config(make_run(), make_model("vendor/odd", provider=local), tool_use_mode="strict", **settings_)
    odd_cell = make_cell(odd_config, "weather", scenario_group="weather", scenario_version=2, instance_kind="drawn")
    odd = make_trial(
        odd_cell, "fail", prompt_version="p2", failure_class="wrong_arguments", signature="wrong_arguments weather",
        cause="wrong_argument", cause_signature="wrong_argument $.cities[]", taxonomy=3, causes=[WRONG_CITY],
        label="night", sentence="Turn 1: Atlantis instead of Oslo.",
    )  # fmt: skip
    make_step(odd, attempt=2)
    even, simulated, imported = (
        make_trial(make_cell(make_config(make_run(**kind)))) for kind in ({}, {"simulated": True}, {"imported": True})
    )
    update_search_texts()
    return {"odd": odd, "even": even, "simulated": simulated, "imported": imported}


@pytest.mark.parametrize("query", FILTERS)
def test_trial_list_old_filter_shows_same_trials(owner_client: Client, trials: dict[str, Trial], query: str) -> None:
    odd = trials["odd"]
    address = "/trials/?" + query.format(run=odd.run_id, cell=odd.cell_id, config=odd.config_id)
    page = read_html(owner_client.get(address))
    shown = {int(number) for number in re.findall(r'href="/trials/(\d+)/', page)}
    assert shown == {trials[name].pk for name in FILTERS[query].split()}


@pytest.mark.parametrize(
    ("sort", "models"),
    [
        ("glm_4_7_recommended", ["glm-4.7", "kimi-k2", "qwen3"]),
        ("-glm_4_7_recommended", ["kimi-k2", "glm-4.7", "qwen3"]),
        ("-kimi_k2_recommended", ["kimi-k2", "glm-4.7", "qwen3"]),
        ("-recommended", ["kimi-k2", "glm-4.7", "qwen3"]),
        ("-default", ["qwen3", "glm-4.7", "kimi-k2"]),
    ],
)
def test_matrix_old_order_by_whole_name_of_profile(owner_client: Client, sort: str, models: list[str]) -> None:
    run = make_run()
    profiles = {"glm-4.7": ("glm_4_7_recommended", 9), "kimi-k2": ("kimi_k2_recommended", 2), "qwen3": ("default", 5)}
    for model, (profile, passed) in profiles.items():
        cell = make_cell(make_config(run, make_model(model), profile=profile))
        make_trials(cell, **{"pass": passed, "fail": 10 - passed})
    page = read_html(owner_client.get(f"/matrix/?view=profile&sort={sort}"))
    assert list_models(page) == models
    direction = "ascending" if sort.startswith("-") else "descending"
    assert page.count(f'aria-sort="{direction}"') == 1, "the head of the sorted column says so"


@pytest.mark.parametrize(
    ("sort", "models"),
    [
        ("tokens", ["talkative", "terse"]),
        ("-tokens", ["terse", "talkative"]),
        ("retries", ["terse", "talkative"]),
        ("-retries", ["talkative", "terse"]),
    ],
)
def test_run_page_old_order_by_hidden_column(owner_client: Client, sort: str, models: list[str]) -> None:
    run = make_run()
    for model, tokens, retries in (("talkative", 900, 1), ("terse", 100, 3)):
        cell = make_cell(make_config(run, make_model(model)))
        make_trial(cell, output_tokens=tokens, retries=retries)
    recompute_stale_cells()
    page = read_html(owner_client.get(f"/runs/{run.pk}/?sort={sort}"))
    assert list_models(page) == models
    assert 'id="sort-cost"' in page
    assert f'id="sort-{sort.removeprefix("-")}"' not in page


def list_models(page: str) -> list[str]:
    """Return the labels of the rows of a grid."""
    return re.findall(r'id="row-\d+"[^>]*>([^<]+)<', page)


def test_old_paths_exist_and_are_listed_in_docs() -> None:
    routes = {remove_names(str(pattern.pattern)) for pattern in NAMED.values()}
    table = remove_names((Path(settings.BASE_DIR) / "docs" / "addresses.md").read_text())
    for path in map(remove_names, PATHS):
        assert path in routes
        assert f"`/{path}`" in table, path


def remove_names(text: str) -> str:
    """Replace the names of placeholders in paths, since only their positions must stay."""
    return re.sub("<[a-z_:]+>|{[a-z_]+}", "{}", text)
