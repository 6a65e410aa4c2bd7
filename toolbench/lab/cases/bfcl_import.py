"""Import of BFCL cases as public test cases with their source and licence."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from django.db import transaction

from toolbench.evals.bfcl import cases as single_turn
from toolbench.evals.bfcl.cases import BfclCase, read_version
from toolbench.evals.bfcl.multi_turn import cases as multi_turn
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase
from toolbench.lab.models import Case, CaseSet, CaseVersion

BFCL_CATEGORIES = (*single_turn.CATEGORIES, *multi_turn.MULTI_TURN_CATEGORIES)
BFCL_LICENCE = "Apache 2.0"
BFCL_LINK = "https://github.com/ShishirPatil/gorilla/tree/main/berkeley-function-call-leaderboard"


class UnknownCategoryError(Exception):
    """Unknown BFCL category; the message lists the known ones."""


@dataclass(frozen=True, slots=True)
class CategoryImport:
    """Numbers of imported cases of one category.

    Attributes:
        added: cases that are new, or that were deleted and are added again.
        changed: other cases that got a new version.
        unchanged: cases that exist with the same definition.
    """

    category: str
    added: int
    changed: int
    unchanged: int


def import_bfcl(categories: Sequence[str], *, limit: int | None = None) -> tuple[CategoryImport, ...]:
    """Import the cases of the categories.

    A case that was imported before is unchanged, or gets a new version if the installed wheel of bfcl-eval defines it
    differently. A deleted case is added again. Each category is imported in a transaction of its own.

    Args:
        categories: names of BFCL categories.
        limit: maximum number of cases of each category; None for all.

    Raises:
        UnknownCategoryError: a category is unknown.
        NotInstalledError: the wheel of bfcl-eval is not installed.
    """
    if unknown := [name for name in categories if name not in BFCL_CATEGORIES]:
        names = ", ".join(BFCL_CATEGORIES)
        raise UnknownCategoryError(f"There is no BFCL category {unknown[0]}. Choose from {names}.")
    source = f"Berkeley Function Calling Leaderboard v4, bfcl-eval {read_version()}"
    return tuple(
        _import_category(category, list(islice(_iter_cases(category), limit)), source) for category in categories
    )


def _iter_cases(category: str) -> Iterator[BfclCase] | Iterator[MultiTurnCase]:
    if category in multi_turn.MULTI_TURN_CATEGORIES:
        return multi_turn.iter_multi_turn_cases([category])
    return single_turn.iter_cases([category])


@transaction.atomic
def _import_category(category: str, cases: Sequence[BfclCase | MultiTurnCase], source: str) -> CategoryImport:
    """Create missing cases, restore deleted ones, and add a version to those that the wheel defines differently."""
    set_columns = {"kind": CaseSet.Kind.BFCL, "source": source, "licence": BFCL_LICENCE, "link": BFCL_LINK}
    case_set, _ = CaseSet.objects.update_or_create(
        name=build_bfcl_set_name(category), defaults=set_columns, create_defaults={**set_columns, "public": True}
    )
    imported = Case.objects.filter(set__kind=CaseSet.Kind.BFCL, slug__in=[build_bfcl_slug(case) for case in cases])
    rows = {case.slug: case for case in imported}
    # Restore deleted cases, and move cases here that an imported bundle put into another set.
    imported.exclude(set=case_set, deleted_at=None).update(set=case_set, deleted_at=None)
    definitions = {(row.case_id, row.number): row.definition for row in CaseVersion.objects.filter(case__in=imported)}
    counts: dict[str, int] = defaultdict(int)
    for case in cases:
        row, definition = rows.get(build_bfcl_slug(case)), json.dumps(asdict(case))
        if row is None:
            row = Case.objects.create(set=case_set, slug=build_bfcl_slug(case), title=case.id)
            counts["added"] += 1
        elif definitions[row.pk, row.current] == definition:
            counts["added" if row.deleted_at else "unchanged"] += 1
            continue
        else:
            row.current += 1
            row.save(update_fields=["current"])
            counts["added" if row.deleted_at else "changed"] += 1
        CaseVersion.objects.create(case=row, number=row.current, definition=definition)
    return CategoryImport(category, counts["added"], counts["changed"], counts["unchanged"])


def build_bfcl_set_name(category: str) -> str:
    """Return the name of the set of a BFCL category."""
    return f"BFCL {category}"


def build_bfcl_slug(case: BfclCase | MultiTurnCase) -> str:
    """Return the slug of a BFCL case, at most 60 characters."""
    return f"bfcl-{case.id}"[:60]
