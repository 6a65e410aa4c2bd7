"""Recommendations page: published recommendations word for word, beside those of the rule."""

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.page_html import read_html
from toolbench.lab import builtin_data

pytestmark = pytest.mark.django_db


def test_recommendations_page_shows_published_and_computed_advice(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/decide/recommendations/"))
    assert "40/40 and 36/40" in text
    assert "1,002/1,160" in text
    assert "1,002/1,120" in text
    assert "Timeouts were the dominant failure mode here (p95 ~125s)." in text
    assert 'data-differs="verdict"' in text
    assert text.count("too few answers for a bound") == 1


def test_recommendations_page_shows_own_runs_beside_published_advice(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    config = make_config(make_run(), make_model("openai/gpt-5.2:nitro"))
    make_trials(make_cell(config), **{"pass": 20, "fail": 20})
    text = read_html(owner_client.get("/decide/recommendations/?scope=real"))
    assert "97.5% tool success in this snapshot." in text
    assert "<b>verdict</b>: Yes / No." in text
    assert "No trials in this scope" in read_html(owner_client.get("/decide/recommendations/?scope=demo"))
