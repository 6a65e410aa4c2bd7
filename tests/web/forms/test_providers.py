"""Form of a provider: sections of less common fields."""

import pytest

from toolbench.web.forms.providers import ProviderForm

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("field", ["connect_seconds", "read_seconds", "max_attempts"])
def test_provider_form_opens_section_of_invalid_field(field: str) -> None:
    assert ProviderForm({"base_url": "https://x.test", field: "x"}).is_expanded
    assert not ProviderForm({"base_url": "https://x.test", field: "2"}).is_expanded
