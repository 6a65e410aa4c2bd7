"""Audit list of the launches, changes, deletions, imports and key changes by each person."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from toolbench.lab.models import AuditEntry
from toolbench.lab.query_params import clean_text

Action = AuditEntry.Action
PAGE_SIZE = 50
_MAX_SUBJECT_CHARS = 300


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Page of the audit list.

    Attributes:
        entries: newest first.
        username: the person whose entries are listed; empty for all.
        usernames: the persons with entries, by name; "" stands for actions without a sign-in.
        older: number of the next page; None on the last one.
    """

    entries: Sequence[AuditEntry]
    username: str
    usernames: Sequence[str]
    older: int | None


def record_action(user: User | None, action: Action, subject: str, url: str = "") -> None:
    """Add an entry to the audit list.

    Args:
        user: the person; None without a sign-in, which is recorded as "".
        action: what the person did.
        subject: name of what was launched, changed or deleted, cut off at 300 characters; never a secret.
        url: address of the subject's page; empty for none.
    """
    username = user.username if user else ""
    AuditEntry.objects.create(username=username, action=action, subject=subject[:_MAX_SUBJECT_CHARS], url=url)


def get_audit_page(username: str = "", page: int = 1) -> AuditPage:
    """Return one page of the entries of a person; of all persons if `username` is empty."""
    username = clean_text(username)
    entries = AuditEntry.objects.filter(username=username) if username else AuditEntry.objects.all()
    start = (page - 1) * PAGE_SIZE
    rows = list(entries[start : start + PAGE_SIZE + 1])
    usernames = AuditEntry.objects.order_by("username").values_list("username", flat=True).distinct()
    older = page + 1 if len(rows) > PAGE_SIZE else None
    return AuditPage(rows[:PAGE_SIZE], username, list(usernames), older)
