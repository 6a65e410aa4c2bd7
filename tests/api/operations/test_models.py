"""Models through the API."""

import pytest

from tests.api.requests import ApiClient
from tests.factories import make_model, make_provider

pytestmark = pytest.mark.django_db


def test_models_api_list_and_model_name_same_constraint(api: ApiClient) -> None:
    """A model without a constraint of its own has that of its template."""
    model = make_model("gpt-5.2", provider=make_provider("OpenAI", template="openai"))
    (listed,) = api.get("/models")
    assert listed["constraint"]
    assert api.get(f"/models/{model.pk}") == listed
    changed = api.send("PATCH", f"/models/{model.pk}", {"canonical": model.canonical})
    assert changed.status_code == 200
    assert api.get(f"/models/{model.pk}") == listed
