"""Models page: list, filter and canonical model."""

import pytest
from django.test import Client

from tests.factories import make_model, make_provider
from tests.page_html import read_html
from toolbench.lab import builtin_data

pytestmark = pytest.mark.django_db


def test_models_page_lists_and_filters_models(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    assert "Mixed upstreams" in read_html(owner_client.get("/models/"))
    found = read_html(owner_client.get("/models/?q=grok"))
    assert "x-ai/grok-4.1-fast" in found
    assert "deepseek" not in found


def test_models_page_without_match_offers_all_models(owner_client: Client) -> None:
    assert "Show all" in read_html(owner_client.get("/models/?q=%00nothing"))


def test_model_weights_form_sets_canonical_model(owner_client: Client) -> None:
    one, other = make_model("vendor/a"), make_model("hosted-a", provider=make_provider("Host"))
    owner_client.post(f"/models/{other.pk}/weights/", {"weights": " Vendor/A\0"})
    other.refresh_from_db()
    assert other.canonical == "vendor/a"
    answer = owner_client.post(f"/models/{other.pk}/weights/", {"weights": one.canonical}, follow=True)
    assert "Its canonical model is vendor/a from now on" in read_html(answer)
    assert owner_client.post("/models/9999/weights/").status_code == 404
