"""Canonical names of models."""

import pytest

from tests.factories import make_model, make_provider
from toolbench.lab.endpoints.canonical_models import MAX_NAME_CHARS, set_canonical_name
from toolbench.lab.endpoints.offered_models import add_models
from toolbench.lab.models import Model

pytestmark = pytest.mark.django_db
LONGER_IN_LOWER_CASE = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" * MAX_NAME_CHARS


def test_set_canonical_name_fits_column_if_lower_case_is_longer() -> None:
    model = make_model()
    stored = set_canonical_name(model.pk, LONGER_IN_LOWER_CASE)
    model.refresh_from_db()
    assert stored == model.canonical == LONGER_IN_LOWER_CASE.lower()[:MAX_NAME_CHARS]


def test_add_models_canonical_name_fits_column_if_lower_case_is_longer() -> None:
    assert add_models(make_provider().pk, [LONGER_IN_LOWER_CASE]) == 1
    assert len(Model.objects.get().canonical) == MAX_NAME_CHARS
