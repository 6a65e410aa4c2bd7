"""Creation of alert rules and check of their settings."""

import math
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import AlertRule, Schedule
from toolbench.lab.schedules.conditions import CONDITIONS, Kind

MAX_URL_CHARACTERS = 2000
MAX_HOST_CHARACTERS = 260  # of the column AlertRule.webhook_host
MAX_EMAIL_CHARACTERS = 254  # of the column AlertRule.email


class RuleError(InvalidFieldsError):
    """Raised if an alert rule cannot be saved."""


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """Settings of a rule that a person enters.

    Attributes:
        kind: value of AlertRule.Kind.
        threshold: in the unit of the kind (CONDITIONS), and required if the kind has one; otherwise ignored.
        webhook: URL of the webhook; empty for none.
        email: e-mail address; empty for none.
    """

    kind: str
    threshold: float | None
    webhook: str
    email: str


def create_rule(schedule: Schedule | None, settings: RuleSettings) -> AlertRule:
    """Create a rule for a schedule, or for all runs if `schedule` is None.

    Alerts of a rule without an address are only shown on pages.

    Raises:
        RuleError: a setting is wrong.
    """
    _check_settings(schedule, settings)
    return AlertRule.objects.create(
        schedule=schedule,
        kind=settings.kind,
        threshold=settings.threshold if CONDITIONS[Kind(settings.kind)].unit else None,
        webhook_encrypted=encrypt(settings.webhook) if settings.webhook else None,
        webhook_host=_find_host(settings.webhook) or "",
        email=settings.email,
    )


def name_rule(schedule: Schedule | None) -> str:
    """Return the name of an alert rule in the audit list; a rule without a schedule is for all runs."""
    return f"alert rule of schedule {schedule}" if schedule else "alert rule for all runs"


def _check_settings(schedule: Schedule | None, settings: RuleSettings) -> None:
    errors: dict[str, list[str]] = {}
    kind = CONDITIONS.get(Kind(settings.kind)) if settings.kind in Kind.values else None
    if kind is None:
        errors["kind"] = ["Choose a rule from the list."]
    elif schedule is None and kind.needs_schedule:
        errors["kind"] = ["This rule compares runs of one schedule. Add it on the page of a schedule."]
    elif kind.unit and not _is_valid_threshold(settings.threshold, kind.maximum):
        errors["threshold"] = [f"Enter a number above 0, at most {kind.maximum:,.10g}."]
    if settings.webhook and _find_host(settings.webhook) is None:
        errors["webhook"] = ["Enter an address that begins with https:// or http:// and names a host."]
    if settings.email and not _is_valid_email(settings.email):
        errors["email"] = ["Enter an e-mail address, such as name@example.com."]
    if errors:
        raise RuleError(errors)


def _is_valid_email(address: str) -> bool:
    try:
        validate_email(address)
    except ValidationError:
        return False
    return len(address) <= MAX_EMAIL_CHARACTERS


def _is_valid_threshold(threshold: float | None, maximum: float) -> bool:
    return threshold is not None and math.isfinite(threshold) and 0 < threshold <= maximum


def _find_host(url: str) -> str | None:
    """Return the host of a webhook's URL, with the port if the URL names one; None if the URL is invalid.

    Pages show only this part, since path and query often contain a secret.
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    is_valid = parts.scheme in ("http", "https") and parts.hostname and len(url) <= MAX_URL_CHARACTERS
    is_readable = url.isprintable() and " " not in url
    return f"{parts.hostname}{port}"[:MAX_HOST_CHARACTERS] if is_valid and is_readable else None
