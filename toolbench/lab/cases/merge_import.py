"""Import of parsed test cases, which are new, changed or unchanged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from toolbench.evals.user_cases.definition import UserCase, render_case
from toolbench.lab.cases.drafts import MAX_TITLE_CHARS
from toolbench.lab.cases.edit import DEFAULT_SET_NAME, NewCaseOptions, add_cases, edit_case
from toolbench.lab.models import Case, CaseSet, CaseVersion
from toolbench.lab.traces.step_facts import to_column_text

MAX_SLUGS_NAMED = 5
UPDATED_TEXT = "updated, with a new version if more than the title changed"


@dataclass(frozen=True, slots=True)
class ParsedCase:
    """A case of an imported file.

    Attributes:
        slug: slug from the file; empty if the file has none.
        set: name of its set from the file; empty if the file has none.
    """

    title: str
    case: UserCase
    slug: str = ""
    set: str = ""


@dataclass(frozen=True, slots=True)
class CaseImportResult:
    """Result of an import.

    Attributes:
        changed: cases with a new version or title.
        unchanged: cases that exist with the same content.
    """

    new: tuple[Case, ...] = ()
    changed: tuple[Case, ...] = ()
    unchanged: tuple[Case, ...] = ()

    @property
    def sentence(self) -> str:
        """The result as sentences for the user."""
        private = all(not case.set.public for case in self.new)
        public_cases = tuple(case for case in self.changed if case.set.public)
        parts = {
            f"imported{' as private' if private else ''}": self.new,
            UPDATED_TEXT: tuple(case for case in self.changed if not case.set.public),
            f"of a public set, which exports include, {UPDATED_TEXT}": public_cases,
            "unchanged": self.unchanged,
        }
        return " ".join(f"{_describe_cases(cases)} {outcome}." for outcome, cases in parts.items() if cases)


def _describe_cases(cases: Sequence[Case]) -> str:
    slugs = ", ".join(case.slug for case in cases[:MAX_SLUGS_NAMED])
    more = f" and {len(cases) - MAX_SLUGS_NAMED:,} more" if len(cases) > MAX_SLUGS_NAMED else ""
    return f"{len(cases):,} test case{'' if len(cases) == 1 else 's'} ({slugs}{more})"


@transaction.atomic
def merge_cases(parsed_cases: Sequence[ParsedCase], set_name: str = "") -> CaseImportResult:
    """Save the cases, all or none.

    An imported case updates the stored user case with the same slug, of any set, or leaves it unchanged if both are
    equal. If no user case has the slug, but one has the same title and content, the imported case is counted as
    unchanged. Any other imported case is created; it gets another slug if its slug is taken.

    Args:
        parsed_cases: the cases of the file.
        set_name: name of the set of new cases; empty for the set that each case names, by default DEFAULT_SET_NAME.

    Raises:
        InvalidFieldsError: as in `add_cases`.
    """
    by_slug = {
        row.case.slug: row
        for row in _get_current_versions(case__slug__in=[parsed.slug for parsed in parsed_cases if parsed.slug])
    }
    definitions = [render_case(parsed.case) for parsed in parsed_cases]
    by_content = {(row.case.title, row.definition): row for row in _get_current_versions(definition__in=definitions)}
    new: list[tuple[str, UserCase, NewCaseOptions]] = []
    changed, unchanged = [], []
    for parsed, definition in zip(parsed_cases, definitions, strict=True):
        content = to_column_text(parsed.title, MAX_TITLE_CHARS), definition
        existing = by_slug.get(parsed.slug) or by_content.get(content)
        if existing is None:
            new.append(
                (
                    parsed.title,
                    parsed.case,
                    NewCaseOptions(set=set_name or parsed.set or DEFAULT_SET_NAME, slug=parsed.slug),
                )
            )
        elif (existing.case.title, existing.definition) == content:
            unchanged.append(existing.case)
        else:
            changed.append(edit_case(existing.case.slug, parsed.title, parsed.case))
    return CaseImportResult(add_cases(new), tuple(changed), tuple(unchanged))


def _get_current_versions(**conditions: object) -> Iterable[CaseVersion]:
    """Return the newest versions of the user cases that fulfil the conditions."""
    rows = CaseVersion.objects.filter(case__deleted_at=None, case__set__kind=CaseSet.Kind.OWN, **conditions)
    return rows.filter(number=F("case__current")).select_related("case__set")
