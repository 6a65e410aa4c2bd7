"""Share links, which show one run, comparison or trial without an account. They expire and can be revoked."""

from collections.abc import Sequence
from datetime import timedelta

from django.contrib.auth.models import User
from django.core.signing import BadSignature, Signer
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from toolbench.lab.accounts.roles import Role, has_role
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import Run, ShareLink, Trial
from toolbench.lab.query_params import clean_text, parse_whole_number

EXPIRY_DAYS = (1, 7, 30, 90)
MAX_QUERY_CHARACTERS = 7_000
MAX_LINKS_LISTED = 200
_SIGNER = Signer(salt="share link")


def create_share_link(
    user: User, kind: str, *, target: int | None = None, query: str = "", days: int | None = 7
) -> ShareLink:
    """Create a share link and return it.

    Args:
        user: the person who creates the link.
        kind: a value of ShareLink.Kind.
        target: primary key of the run or trial; ignored for a comparison.
        query: query string of a comparison; ignored for a run or trial.
        days: days until the link expires, one of EXPIRY_DAYS.

    Raises:
        InvalidFieldsError: the kind is unknown, `days` is not in EXPIRY_DAYS, the run or trial does not exist, or the
            query is empty or too long.
    """
    query = clean_text(query)
    if errors := _find_errors(kind, target, query, days):
        raise InvalidFieldsError(errors)
    is_comparison = kind == ShareLink.Kind.COMPARISON
    return ShareLink.objects.create(
        user=user,
        kind=kind,
        target=None if is_comparison else target,
        query=query if is_comparison else "",
        expires_at=timezone.now() + timedelta(days=days or 0),
    )


def build_link_token(link: ShareLink) -> str:
    """Return the signed token `ID.SIGNATURE`, the last part of the link's address."""
    return _SIGNER.sign(str(link.pk)).replace(":", ".")


def find_share_link(token: str) -> ShareLink | None:
    """Return the link of a token; None if the signature is wrong or the link is not valid."""
    try:
        link_id = parse_whole_number(_SIGNER.unsign(token.replace(".", ":", 1)))
    except BadSignature:
        return None
    return _find_valid_links().filter(pk=link_id or 0).first()


def list_share_links(user: User) -> Sequence[ShareLink]:
    """Return at most MAX_LINKS_LISTED valid links of a person, or of all people for an owner, newest first."""
    return list(_find_revocable_links(user).select_related("user")[:MAX_LINKS_LISTED])


def revoke_share_link(user: User, link_id: int) -> ShareLink | None:
    """Revoke a valid link and return it; None if it does not exist or the person may not revoke it."""
    link = _find_revocable_links(user).filter(pk=link_id).first()
    if link is not None:
        ShareLink.objects.filter(pk=link.pk).update(revoked_at=Now())
    return link


def _find_valid_links() -> QuerySet[ShareLink]:
    """Return the links that are neither expired nor revoked and whose creators may still share them."""
    may_share = Q(user__is_staff=True) | Q(user__is_superuser=True)  # operators and owners
    return ShareLink.objects.filter(may_share, revoked_at=None, expires_at__gt=Now(), user__is_active=True)


def _find_revocable_links(user: User) -> QuerySet[ShareLink]:
    return _find_valid_links() if has_role(user, Role.OWNER) else _find_valid_links().filter(user=user)


def _find_errors(kind: str, target: int | None, query: str, days: int | None) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    if kind not in ShareLink.Kind.values:
        errors["kind"] = ["Choose run, comparison or trial."]
    elif kind == ShareLink.Kind.RUN and not Run.objects.filter(pk=target or 0, deleted_at=None).exists():
        errors["target"] = ["There is no such run; it may have been deleted."]
    elif kind == ShareLink.Kind.TRIAL and not Trial.objects.filter(pk=target or 0, run__deleted_at=None).exists():
        errors["target"] = ["There is no such trial; its run may have been deleted."]
    elif kind == ShareLink.Kind.COMPARISON and not query:
        errors["query"] = ["Compare sides first, then share the comparison."]
    elif kind == ShareLink.Kind.COMPARISON and len(query) > MAX_QUERY_CHARACTERS:
        errors["query"] = ["This comparison has too many filters to be shared. Remove some of them."]
    if days not in EXPIRY_DAYS:
        errors["days"] = [f"Choose {', '.join(map(str, EXPIRY_DAYS))} days."]
    return errors
