"""BFCL's cases as sets of cases: public, with their source and licence."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from django.db import transaction

from toolbench.evals.bfcl import cases as single_turn
from toolbench.evals.bfcl.cases import Case as BfclCase
from toolbench.evals.bfcl.cases import version
from toolbench.evals.bfcl.multi_turn import cases as multi_turn
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase
from toolbench.lab.models import Case, CaseSet, CaseVersion

CATEGORIES = (*single_turn.CATEGORIES, *multi_turn.CATEGORIES)
LICENCE = "Apache 2.0"
LINK = "https://github.com/ShishirPatil/gorilla/tree/main/berkeley-function-call-leaderboard"


class UnknownCategory(Exception):
    """Its text names those that there are."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What came of a category: new cases, cases with a new version, cases that were there as they are."""

    category: str
    added: int
    changed: int
    same: int


def import_bfcl(categories: Sequence[str], *, limit: int | None = None) -> tuple[Brought, ...]:
    """The categories' cases, the first `limit` of each. Coming again changes nothing; a case that reads otherwise in
    another version of the wheel gets a new version. Raises UnknownCategory, and NotInstalled where the wheel is not
    there."""
    if unknown := [name for name in categories if name not in CATEGORIES]:
        known = ", ".join(CATEGORIES)
        raise UnknownCategory(f"There is no category {unknown[0]} that is brought in: choose from {known}.")
    source = f"Berkeley Function Calling Leaderboard v4, bfcl-eval {version()}"
    return tuple(_bring(category, list(islice(_cases(category), limit)), source) for category in categories)


def _cases(category: str) -> Iterator[BfclCase] | Iterator[MultiTurnCase]:
    if category in multi_turn.CATEGORIES:
        return multi_turn.multi_turn_cases([category])
    return single_turn.cases([category])


@transaction.atomic
def _bring(category: str, found: Sequence[BfclCase | MultiTurnCase], source: str) -> Brought:
    about = {"kind": CaseSet.Kind.BFCL, "source": source, "licence": LICENCE, "link": LINK}
    group, _ = CaseSet.objects.update_or_create(
        name=f"BFCL {category}", defaults=about, create_defaults={**about, "public": True}
    )
    rows = {case.slug: case for case in Case.objects.filter(set=group)}
    texts = {(row.case_id, row.number): row.definition for row in CaseVersion.objects.filter(case__set=group)}
    counts: dict[str, int] = defaultdict(int)
    for case in found:
        row, text = rows.get(slug_of(case)), json.dumps(asdict(case))
        if row is None:
            row = Case.objects.create(set=group, slug=slug_of(case), title=case.id)
            counts["added"] += 1
        elif texts[row.pk, row.current] == text:
            counts["same"] += 1
            continue
        else:
            row.current += 1
            row.save(update_fields=["current"])
            counts["changed"] += 1
        CaseVersion.objects.create(case=row, number=row.current, definition=text)
    return Brought(category, counts["added"], counts["changed"], counts["same"])


def slug_of(case: BfclCase | MultiTurnCase) -> str:
    return f"bfcl-{case.id}"[:60]
