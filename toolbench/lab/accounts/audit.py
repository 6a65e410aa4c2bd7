"""The audit list: who launched, changed, deleted or imported what, and who entered or removed a key."""

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
    """A page of the audit list, newest first.

    Attributes:
        older: number of the next page; None on the last one.
    """

    entries: Sequence[AuditEntry]
    username: str
    usernames: Sequence[str]
    older: int | None


def record_action(user: User | None, action: Action, subject: str, url: str = "") -> None:
    """Add an entry to the audit list.

    Args:
        user: the person, or None without a sign-in, which is recorded as "".
        action: what the person did.
        subject: what was launched, changed or deleted, as a reader knows it; never a secret.
        url: the page of the subject.
    """
    username = user.username if user else ""
    AuditEntry.objects.create(username=username, action=action, subject=subject[:_MAX_SUBJECT_CHARS], url=url)


def get_audit_page(username: str = "", page: int = 1) -> AuditPage:
    """Return the entries of one person, or of all, page by page."""
    username = clean_text(username)
    entries = AuditEntry.objects.filter(username=username) if username else AuditEntry.objects.all()
    start = (page - 1) * PAGE_SIZE
    shown = list(entries[start : start + PAGE_SIZE + 1])
    names = AuditEntry.objects.order_by("username").values_list("username", flat=True).distinct()
    older = page + 1 if len(shown) > PAGE_SIZE else None
    return AuditPage(shown[:PAGE_SIZE], username, list(names), older)
