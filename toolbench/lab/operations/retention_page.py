"""The page of retention: the rules and, for a preview, what they would remove now."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.operations.body_removal import DueTrials, preview_removal
from toolbench.lab.operations.retention_policy import (
    Kind,
    load_retention_policy,
    parse_retention_policy,
)


@dataclass(frozen=True, slots=True)
class RetentionRow:
    """One kind of trials with its rule.

    Attributes:
        text: the days as typed or saved; "" for none.
        errors: what is wrong with the text.
        due: what the rule would remove now; None without a preview, without a rule or for an invalid text.
    """

    kind: Kind
    text: str
    errors: tuple[str, ...]
    due: DueTrials | None

    @property
    def field_id(self) -> str:
        """HTML id of the input for the days."""
        return f"days-{self.kind.value}"


@dataclass(frozen=True, slots=True)
class RetentionPage:
    """The rules of all kinds, saved or typed.

    Attributes:
        is_preview: whether the rules are typed ones that are not saved.
    """

    rows: tuple[RetentionRow, ...]
    is_preview: bool

    @property
    def trial_count(self) -> int:
        """Number of trials whose bodies are due."""
        return sum(row.due.trials for row in self.rows if row.due)

    @property
    def stored_bytes(self) -> int:
        """Estimated stored bytes of the bodies that are due."""
        return sum(row.due.stored_bytes for row in self.rows if row.due)

    @property
    def has_errors(self) -> bool:
        """Whether the text of any row is invalid."""
        return any(row.errors for row in self.rows)


def get_retention_page(typed: Mapping[str, str] | None = None) -> RetentionPage:
    """Return the page. Only a preview counts what is due, since that reads all trials.

    Args:
        typed: days by kind, as typed, whose effect is shown without saving them; None for the saved rules.
    """
    saved = load_retention_policy()
    texts = {kind.value: str(days) for kind, days in saved.days_by_kind.items()} if typed is None else typed
    errors: dict[str, list[str]] = {}
    try:
        policy = parse_retention_policy(texts)
    except InvalidFieldsError as error:
        errors = error.errors
        policy = parse_retention_policy({kind: text for kind, text in texts.items() if kind not in errors})
    due = {trials.kind: trials for trials in preview_removal(policy)} if typed is not None else {}
    rows = tuple(RetentionRow(kind, texts.get(kind, ""), tuple(errors.get(kind, ())), due.get(kind)) for kind in Kind)
    return RetentionPage(rows, is_preview=typed is not None)
