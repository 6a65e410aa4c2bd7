"""Rules by which bodies of trials are removed: how they are loaded, parsed and saved."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import RetentionRule
from toolbench.lab.query_params import parse_whole_number

Kind = RetentionRule.Kind
MAX_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """All rules.

    Attributes:
        days_by_kind: days after which bodies are removed, by kind of trials; bodies of other kinds are kept.
    """

    days_by_kind: Mapping[Kind, int]

    @property
    def kinds(self) -> list[str]:
        """The kinds with a rule, as parameter of an SQL statement."""
        return [kind.value for kind in self.days_by_kind]

    @property
    def days(self) -> list[int]:
        """The days of the rules, in the order of `kinds`."""
        return list(self.days_by_kind.values())


def describe_rule(kind: Kind, days: int) -> str:
    """Return a rule in words, as it is stored with the trials whose bodies it removes."""
    return f"{kind.label} after {days} day{'' if days == 1 else 's'}"


def load_retention_policy() -> RetentionPolicy:
    """Return the saved rules, with one query."""
    rows = RetentionRule.objects.values_list("kind", "days")
    return RetentionPolicy({Kind(kind): days for kind, days in rows})


def save_retention_policy(policy: RetentionPolicy) -> None:
    """Replace all rules."""
    with transaction.atomic():
        RetentionRule.objects.exclude(kind__in=policy.kinds).delete()
        for kind, days in policy.days_by_kind.items():
            RetentionRule.objects.update_or_create(kind=kind, defaults={"days": days})


def parse_retention_policy(values: Mapping[str, str]) -> RetentionPolicy:
    """Parse the rules that a user entered.

    Args:
        values: days as text, by kind; an empty text or a missing kind means no rule.

    Raises:
        InvalidFieldsError: a text is not a whole number from 1 to MAX_DAYS.
    """
    days_by_kind: dict[Kind, int] = {}
    errors: dict[str, list[str]] = {}
    for kind in Kind:
        text = values.get(kind, "").strip()
        days = parse_whole_number(text, minimum=1, maximum=MAX_DAYS)
        if days is not None:
            days_by_kind[kind] = days
        elif text:
            errors[kind] = [f"Enter whole days from 1 to {MAX_DAYS}, or leave it empty to keep the bodies."]
    if errors:
        raise InvalidFieldsError(errors)
    return RetentionPolicy(days_by_kind)
