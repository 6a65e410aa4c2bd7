"""Pages of people and of the audit list."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from tests.page_html import read_html
from toolbench.lab.endpoints import offered_models
from toolbench.lab.models import AuditEntry, Provider

pytestmark = pytest.mark.django_db


def invite(client: Client, name: str, role: str) -> str:
    """Invite a person and return the path of the link."""
    page = read_html(client.post("/settings/people/", {"name": name, "role": role}))
    found = re.search(r"http://testserver(/sign-in/[^<]+)<", page)
    assert found is not None
    return found[1]


def list_entries() -> list[str]:
    return [str(entry) for entry in AuditEntry.objects.order_by("pk")]


def test_people_page_invited_viewer_reads_pages_and_cannot_change(owner_client: Client, client: Client) -> None:
    link = invite(owner_client, "ana", "viewer")
    assert client.get(link).status_code == 302
    assert client.get("/runs/").status_code == 200
    assert client.post("/providers/new/", {"name": "mine"}).status_code == 403
    assert 'class="read-only"' in read_html(client.get("/runs/"))
    assert "People" not in read_html(client.get("/runs/"))
    assert list_entries() == ["owner invited ana as viewer"]


def test_people_page_shows_sign_in_link_once(owner_client: Client) -> None:
    token = invite(owner_client, "ana", "operator").split("/")[2]
    assert token not in read_html(owner_client.get("/settings/people/"))


def test_people_page_says_how_long_a_sign_in_link_works(owner_client: Client, settings: Settings) -> None:
    settings.SIGN_IN_HOURS = 7
    page = read_html(owner_client.post("/settings/people/", {"name": "ana", "role": "viewer"}))
    assert "within 7 hours" in page


def test_people_page_refused_invitation_keeps_input(owner_client: Client) -> None:
    response = owner_client.post("/settings/people/", {"name": "two words", "role": "operator"})
    assert response.status_code == 422
    page = read_html(response)
    assert 'value="two words"' in page
    assert "letters, digits" in page


def test_people_page_changes_role_and_state_with_audit_entries(owner_client: Client) -> None:
    invite(owner_client, "ana", "viewer")
    ana = User.objects.get(username="ana")
    for action in ({"action": "role", "role": "operator"}, {"action": "close"}, {"action": "open"}):
        owner_client.post(f"/settings/people/{ana.pk}/act/", action)
    response = owner_client.post(f"/settings/people/{ana.pk}/act/", {"action": "nonsense"}, follow=True)
    assert "There is no action nonsense" in read_html(response)
    assert list_entries()[1:] == [
        "owner changed role of ana: operator",
        "owner changed account of ana: closed",
        "owner changed account of ana: open",
    ]


def test_audit_page_lists_key_changes_without_the_key(owner_client: Client) -> None:
    values = {"name": "Mine", "base_url": "http://127.0.0.1:9", "wire": "chat", "key": "sk-not-in-the-list-1234"}
    owner_client.post("/providers/new/", values)
    provider = Provider.objects.get(name="Mine")
    owner_client.post(f"/providers/{provider.pk}/", {**values, "key": "", "remove_key": "on"})
    owner_client.post(f"/providers/{provider.pk}/delete/")
    assert list_entries() == [
        "owner added provider Mine",
        "owner entered a key for provider Mine",
        "owner changed provider Mine",
        "owner removed a key of provider Mine",
        "owner deleted provider Mine",
    ]
    page = read_html(owner_client.get("/settings/audit/"))
    assert "provider Mine" in page
    assert "sk-not-in-the-list" not in page


def test_audit_page_filters_by_person_and_shows_empty_list(owner_client: Client) -> None:
    assert "No entries" in read_html(owner_client.get("/settings/audit/"))
    invite(owner_client, "ana", "viewer")
    assert "ana as viewer" in read_html(owner_client.get("/settings/audit/?person=owner"))
    assert "ana as viewer" not in read_html(owner_client.get("/settings/audit/?person=ana&page=x"))


def test_provider_connected_again_from_its_template_is_recorded_as_changed(
    owner_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"name": "OpenRouter", "base_url": "https://openrouter.ai/api", "template": "openrouter"}
    monkeypatch.setattr(offered_models, "request_models", lambda provider_id: None)
    for key in ("", "sk-or"):
        assert owner_client.post("/providers/new/", fields | {"key": key}).status_code == 302
    actions = AuditEntry.objects.filter(subject="provider OpenRouter").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["added", "changed", "key_entered"]
