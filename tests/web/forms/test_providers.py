"""Form of a provider: sections of less common fields."""

import pytest

from toolbench.lab.models import Provider
from toolbench.web.forms.providers import ProviderForm

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("field", ["connect_seconds", "read_seconds", "max_attempts"])
def test_provider_form_opens_section_of_invalid_field(field: str) -> None:
    assert ProviderForm({"base_url": "https://x.test", field: "x"}).is_expanded
    assert not ProviderForm({"base_url": "https://x.test", field: "2"}).is_expanded


def test_provider_form_says_when_key_may_be_blank() -> None:
    forms = (ProviderForm(), ProviderForm(provider=Provider(name="Mine")))
    new, stored = (str(form.fields["key"].help_text) for form in forms)
    assert all("Stored encrypted in the database" in text for text in (new, stored))
    assert "Leave blank if the server needs no key, as most local servers do." in new
    assert "Leave blank to keep the stored key for the same host." in stored
