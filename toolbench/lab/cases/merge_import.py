"""Import of parsed test cases: new, changed and unchanged ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from toolbench.evals.user_cases.definition import UserCase, render_case
from toolbench.lab.cases.edit import DEFAULT_SET_NAME, NewCaseOptions, add_cases, edit_case
from toolbench.lab.models import Case, CaseSet, CaseVersion
from toolbench.lab.traces.step_facts import to_column_text

MAX_SLUGS_NAMED = 5
UPDATED_TEXT = "taken over as it reads now, in a new version where more than the name changed"


@dataclass(frozen=True, slots=True)
class ParsedCase:
    """A case of an imported file.

    Attributes:
        slug: empty if the file names none.
        set: empty if the file names none.
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
        """Return the result in words."""
        private = all(not case.set.public for case in self.new)
        shared = tuple(case for case in self.changed if case.set.public)
        parts = {
            f"brought in{', private' if private else ''}": self.new,
            UPDATED_TEXT: tuple(case for case in self.changed if not case.set.public),
            f"{UPDATED_TEXT}, in a public set, which exports hold": shared,
            "unchanged": self.unchanged,
        }
        return " ".join(f"{_describe_cases(cases)} {outcome}." for outcome, cases in parts.items() if cases)


def _describe_cases(cases: Sequence[Case]) -> str:
    named = ", ".join(case.slug for case in cases[:MAX_SLUGS_NAMED])
    more = f" and {len(cases) - MAX_SLUGS_NAMED:,} more" if len(cases) > MAX_SLUGS_NAMED else ""
    return f"{len(cases):,} case{'' if len(cases) == 1 else 's'} ({named}{more})"


@transaction.atomic
def merge_cases(parsed: Sequence[ParsedCase], group: str = "") -> CaseImportResult:
    """Save the cases, all or none.

    A case whose slug exists is unchanged or gets a new version, whatever its set. A case with the same title and
    content as an existing one is unchanged. Any other case is new.

    Args:
        parsed: the cases of the file.
        group: name of the set of new cases; empty for the set that each case names.
    """
    by_slug = {
        row.case.slug: row for row in _get_current_versions(case__slug__in=[item.slug for item in parsed if item.slug])
    }
    texts = [render_case(item.case) for item in parsed]
    alike = {(row.case.title, row.definition): row for row in _get_current_versions(definition__in=texts)}
    new: list[tuple[str, UserCase, NewCaseOptions]] = []
    changed, standing = [], []
    for item, text in zip(parsed, texts, strict=True):
        title_and_text = to_column_text(item.title, 120), text
        here = by_slug.get(item.slug) or alike.get(title_and_text)
        if here is None:
            new.append(
                (item.title, item.case, NewCaseOptions(set=group or item.set or DEFAULT_SET_NAME, slug=item.slug))
            )
        elif (here.case.title, here.definition) == title_and_text:
            standing.append(here.case)
        else:
            changed.append(edit_case(here.case.slug, item.title, item.case))
    return CaseImportResult(add_cases(new), tuple(changed), tuple(standing))


def _get_current_versions(**which: object) -> Iterable[CaseVersion]:
    """Return the newest versions of the user's own cases."""
    rows = CaseVersion.objects.filter(case__deleted_at=None, case__set__kind=CaseSet.Kind.OWN, **which)
    return rows.filter(number=F("case__current")).select_related("case__set")
