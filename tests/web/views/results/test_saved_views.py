"""Saved views of results and frozen addresses."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_trials, recompute_stale_cells
from tests.page_html import read_html
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.models import AuditEntry, SavedView

pytestmark = pytest.mark.django_db
ADDRESS = "/trials/?model=vendor%2Fa&outcome=fail"


def sign_in(name: str, role: Role) -> Client:
    user = User(username=name)
    set_role(user, role)
    user.save()
    client = Client()
    client.force_login(user)
    return client


def test_saved_view_is_opened_and_replaced_by_name() -> None:
    viewer = sign_in("vera", Role.VIEWER)
    answer = viewer.post("/views/", {"name": " wrong city ", "address": ADDRESS})
    assert (answer.status_code, answer.headers["Location"]) == (302, ADDRESS)
    page = read_html(viewer.get("/matrix/"))
    assert 'href="/trials/?model=vendor%2Fa&amp;outcome=fail">wrong city' in page
    viewer.post("/views/", {"name": "wrong city", "address": "/matrix/?scope=demo"})
    assert [(view.name, view.address) for view in SavedView.objects.all()] == [("wrong city", "/matrix/?scope=demo")]


def test_saved_view_is_visible_to_others_if_shared() -> None:
    maker, other, owner = (
        sign_in(name, role) for name, role in (("m", Role.OPERATOR), ("o", Role.OPERATOR), ("w", Role.OWNER))
    )
    maker.post("/views/", {"name": "own", "address": ADDRESS})
    maker.post("/views/", {"name": "common", "address": ADDRESS, "shared": "1"})
    assert ">own" not in read_html(other.get("/matrix/"))
    assert "shared by m" in read_html(other.get("/matrix/"))
    own, common = SavedView.objects.get(name="own"), SavedView.objects.get(name="common")
    for client, view in ((other, common), (other, own), (owner, own)):
        page = client.post(f"/views/{view.pk}/delete/", {"address": "/matrix/"}, follow=True)
        assert "You have no such view" in read_html(page)
    owner.post(f"/views/{common.pk}/delete/", {"address": "/matrix/"})
    maker.post(f"/views/{own.pk}/delete/", {"address": "/matrix/"})
    assert not SavedView.objects.exists()


def test_saved_view_with_long_address_has_no_audit_link() -> None:
    maker = sign_in("m", Role.OPERATOR)
    for address in (ADDRESS, f"/trials/?model={'x' * 400}"):
        maker.post("/views/", {"name": "common", "address": address, "shared": "1"})
    assert [entry.url for entry in AuditEntry.objects.order_by("pk")] == [ADDRESS, ""]


@pytest.mark.parametrize(
    ("name", "address", "sentence"),
    [
        ("", ADDRESS, "The view has no name"),
        ("x", "https://example.test/matrix/", "This is not a page of results"),
        ("x", "//example.test/matrix/", "This is not a page of results"),
        ("x", "http://[/matrix/", "This is not a page of results"),
        ("x", "///matrix/", "This is not a page of results"),
        ("x", "/mat\nrix/", "This is not a page of results"),
        ("x", "/settings/people/", "This is not a page of results"),
        ("x", "/matrix/?q=\0", "This is not a page of results"),
        ("x", "/matrix/?q=" + "a" * 2000, "has more than 2,000 characters"),
    ],
)
def test_saved_view_refuses_invalid_name_and_address(
    name: str, address: str, sentence: str, owner_client: Client
) -> None:
    answer = owner_client.post("/views/", {"name": name, "address": address})
    assert answer.headers["Location"].startswith("/")
    assert not answer.headers["Location"].startswith("//")
    assert sentence in read_html(owner_client.get("/matrix/"))
    assert not SavedView.objects.exists()


def test_refused_view_keeps_entered_name_in_open_menu(owner_client: Client) -> None:
    entered = {"name": "night check", "address": "/matrix/?q=" + "a" * 2000, "shared": "1"}
    page = read_html(owner_client.post("/views/", entered, follow=True))
    assert re.search(r'<details class="menu" open>\s*<summary class="btn">Views', page)
    assert 'value="night check"' in page
    assert re.search(r'name="shared"\s+value="1"\s+checked', page)


def test_frozen_address_omits_later_runs(owner_client: Client) -> None:
    def add_run(passed: int) -> None:
        make_trials(make_cell(make_config(make_run())), **{"pass": passed})
        recompute_stale_cells()

    add_run(3)
    page = read_html(owner_client.get("/matrix/?target=95"))
    addresses = re.findall(r'data-copy="([^"]+)"', page)
    live, frozen = (address.replace("&amp;", "&") for address in addresses)
    assert (live, frozen.startswith("/matrix/?target=95&upto=")) == ("/matrix/?target=95", True)
    add_run(4)
    assert "7 trials measured here" in read_html(owner_client.get(live))
    page = read_html(owner_client.get(frozen))
    assert "3 trials measured here" in page
    assert "Frozen: runs up to" in page
    assert re.findall(r'data-copy="([^"]+)"', page) == addresses
    for path in ("/trials/", "/failures/", "/decide/"):
        assert f'href="{path}?upto=' in page, path


def test_frozen_address_replaces_invalid_limit(owner_client: Client) -> None:
    run = make_run()
    page = read_html(owner_client.get("/matrix/?upto=x"))
    assert f"The frozen address shows only runs up to run {run.pk}." in page
    assert f'data-copy="/matrix/?upto={run.pk}"' in page
