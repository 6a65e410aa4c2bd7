"""Pages of providers: what they offer and say in each state of the key and of the models."""

import pytest
from django.test import Client

from tests.factories import make_model
from tests.page_html import read_html
from toolbench.lab.models import Provider

pytestmark = pytest.mark.django_db


def test_provider_delete_page_names_stored_key_only_if_one_is_stored(owner_client: Client) -> None:
    provider = make_model().provider
    page = f"/providers/{provider.pk}/delete/"
    assert "Its 1 model is deleted." in read_html(owner_client.get(page))
    form = {"name": provider.name, "base_url": provider.base_url, "key": "sk-secret-of-mine"}
    owner_client.post(f"/providers/{provider.pk}/", form)
    assert "Its 1 model and its stored key are deleted." in read_html(owner_client.get(page))


def test_provider_delete_page_counts_retired_models(owner_client: Client) -> None:
    provider = make_model().provider
    make_model("vendor/retired", provider=provider, retired=True)
    assert "Its 2 models are deleted." in read_html(owner_client.get(f"/providers/{provider.pk}/delete/"))


def test_provider_page_without_its_key_offers_no_plan(owner_client: Client) -> None:
    provider = make_model().provider
    page = f"/providers/{provider.pk}/"
    assert "Plan a run of its models" in read_html(owner_client.get(page))
    Provider.objects.update(key_source="environment", key_env="UNSET_PROVIDER_KEY")
    assert "Plan a run of its models" not in read_html(owner_client.get(page))


def test_models_page_counts_added_models_before_first_list(owner_client: Client) -> None:
    provider = make_model().provider
    text = read_html(owner_client.get(f"/providers/{provider.pk}/models/"))
    assert "1 model is added. Listing what the provider offers sends one request" in text
    assert text.split("<main")[1].count("btn primary") == 1


def test_models_page_keeps_entered_names_that_are_refused(owner_client: Client) -> None:
    model = make_model("m/one")
    too_long = "x" * 201
    response = owner_client.post(f"/providers/{model.provider_id}/models/?q=m", {"more": f"m/one\n{too_long}"})
    text = read_html(response)
    assert response.status_code == 422
    assert "No model was added" in text
    assert f">m/one\n{too_long}</textarea>" in text


def test_models_page_names_refused_names_beside_added_ones(owner_client: Client) -> None:
    provider = make_model("m/one").provider
    entered = f"m/two\n{'x' * 201}\n"
    response = owner_client.post(f"/providers/{provider.pk}/models/", {"more": entered})
    text = read_html(response)
    assert response.status_code == 422
    assert "1 model added." in text
    assert f"cannot have a model of this name: {'x' * 80}<" in text
    assert f">{entered}</textarea>" in text
