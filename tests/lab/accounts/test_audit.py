"""The audit list."""

import pytest
from django.contrib.auth.models import User

from toolbench.lab.accounts.audit import PAGE_SIZE, WITHOUT_SIGN_IN, Action, get_audit_page, record_action
from toolbench.lab.models import AuditEntry

pytestmark = pytest.mark.django_db


def test_get_audit_page_keeps_entries_of_deleted_account_newest_first() -> None:
    user = User.objects.create(username="ana")
    record_action(user, Action.LAUNCHED, "run 1", "/runs/1/")
    record_action(None, Action.DELETED, "x" * 1000)
    user.delete()
    page = get_audit_page()
    assert [entry.username for entry in page.entries] == ["", "ana"]
    assert str(page.entries[1]) == "ana launched run 1"
    assert len(page.entries[0].subject) == 300


def test_record_action_keeps_whole_address_or_none() -> None:
    address = f"/trials/?model={'x' * 285}"
    record_action(None, Action.ADDED, "shared view", address)
    record_action(None, Action.ADDED, "shared view", f"{address}y")
    assert [len(entry.url) for entry in get_audit_page().entries] == [0, 300]


def test_get_audit_page_of_one_user_is_paginated() -> None:
    AuditEntry.objects.bulk_create(
        AuditEntry(username=name, action=Action.CHANGED, subject=str(number))
        for number in range(PAGE_SIZE + 1)
        for name in ("ana", "ben")
    )
    first, second = get_audit_page("ana"), get_audit_page("ana", 2)
    assert (len(first.entries), first.next_page) == (PAGE_SIZE, 2)
    assert (len(second.entries), second.next_page) == (1, None)
    assert {entry.username for entry in (*first.entries, *second.entries)} == {"ana"}
    assert list(first.persons) == [("ana", "ana"), ("ben", "ben")]


def test_get_audit_page_filters_entries_without_sign_in() -> None:
    record_action(None, Action.DELETED, "bodies")
    record_action(User(username="ana"), Action.LAUNCHED, "run 1")
    page = get_audit_page(WITHOUT_SIGN_IN)
    assert [entry.subject for entry in page.entries] == ["bodies"]
    assert list(page.persons) == [(WITHOUT_SIGN_IN, "Without sign-in"), ("ana", "ana")]
