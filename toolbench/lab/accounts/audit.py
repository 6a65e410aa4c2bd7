"""Audit list: actions of users, and of Toolbench without a sign-in."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from toolbench.lab.models import AuditEntry
from toolbench.lab.query_params import clean_text

Action = AuditEntry.Action
PAGE_SIZE = 50
WITHOUT_SIGN_IN = "(none)"  # value of the filter; no username can contain parentheses
_MAX_SUBJECT_CHARS = 300
_MAX_URL_CHARS = 300


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Page of the audit list.

    Attributes:
        entries: newest first.
        person: the username whose entries are listed; WITHOUT_SIGN_IN for entries without a username, "" for all.
        persons: (value, label) pairs of the filter, sorted by username.
        next_page: number of the page with older entries; None on the last one.
    """

    entries: Sequence[AuditEntry]
    person: str
    persons: Sequence[tuple[str, str]]
    next_page: int | None


def record_action(user: User | None, action: Action, subject: str, url: str = "") -> None:
    """Add an entry to the audit list.

    Args:
        user: the person; None for Toolbench itself and for a person without a sign-in, both recorded as "".
        action: what the person or Toolbench did.
        subject: name of what was launched, changed or deleted, cut off at 300 characters; never a secret.
        url: address of the subject's page; empty for none. An address of more than 300 characters is left out, since a
            truncated one would lead elsewhere.
    """
    username = user.username if user else ""
    stored_url = url if len(url) <= _MAX_URL_CHARS else ""
    AuditEntry.objects.create(username=username, action=action, subject=subject[:_MAX_SUBJECT_CHARS], url=stored_url)


def get_audit_page(person: str = "", page: int = 1) -> AuditPage:
    """Return one page of the audit list.

    Args:
        person: a username; WITHOUT_SIGN_IN for entries without one, "" for all entries.
        page: number of the page, from 1.
    """
    person = clean_text(person)
    entries = AuditEntry.objects.all()
    if person:
        entries = entries.filter(username="" if person == WITHOUT_SIGN_IN else person)
    start = (page - 1) * PAGE_SIZE
    rows = list(entries[start : start + PAGE_SIZE + 1])
    usernames = AuditEntry.objects.order_by("username").values_list("username", flat=True).distinct()
    persons = [(name, name) if name else (WITHOUT_SIGN_IN, "Without sign-in") for name in usernames]
    return AuditPage(rows[:PAGE_SIZE], person, persons, page + 1 if len(rows) > PAGE_SIZE else None)
