"""Test cases in a bundle, in the versions that its trials used."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.bfcl.cases import BfclCase as BfclCase
from toolbench.evals.user_cases.parse import InvalidCaseError, parse_case
from toolbench.lab.cases.bfcl_import import BFCL_LICENCE, BFCL_LINK
from toolbench.lab.interchange.row_json import InvalidRowError
from toolbench.lab.models import Case, CaseSet, CaseVersion, Cell
from toolbench.lab.traces.step_facts import to_column_text

_BUNDLE_SOURCE = "brought in with a bundle"
_SET_FIELDS_BY_KIND = {
    CaseSet.Kind.OWN: {"source": _BUNDLE_SOURCE},
    CaseSet.Kind.BFCL: {
        "source": f"Berkeley Function Calling Leaderboard, {_BUNDLE_SOURCE}",
        "licence": BFCL_LICENCE,
        "link": BFCL_LINK,
    },
}
_TEXT_FIELDS = ("slug", "title", "kind", "definition")
_MAX_NAME_NUMBER = 1000


@dataclass(frozen=True, slots=True)
class BundledCase:
    """One version of a test case.

    Attributes:
        slug: name of the case, which is also its scenario.
        version: number from 1.
        title: name shown on pages.
        kind: a `CaseSet.Kind`.
        public: whether its set is public.
        definition: its JSON as text, since the order of keys is part of what is sent.
    """

    slug: str
    version: int
    title: str
    kind: str
    public: bool
    definition: str


def get_bundled_cases(tried: Iterable[tuple[str, int]]) -> tuple[BundledCase, ...]:
    """Return the test cases among these pairs of scenario and version. One query."""
    tried_slugs = set(tried)
    rows = CaseVersion.objects.select_related("case__set").filter(case__slug__in={slug for slug, _ in tried_slugs})
    found = (row for row in rows.order_by("case__slug", "number") if (row.case.slug, row.number) in tried_slugs)
    return tuple(
        BundledCase(row.case.slug, row.number, row.case.title, row.case.set.kind, row.case.set.public, row.definition)
        for row in found
    )


def cases_to_json(seeds: Iterable[BundledCase]) -> JsonObject:
    """Return the content of the member with the test cases."""
    return {"cases": [asdict(seed) for seed in seeds]}


def parse_cases(whole: JsonObject) -> tuple[BundledCase, ...]:
    """Return the test cases that `cases_to_json` wrote.

    Raises:
        InvalidRowError: they have another structure, or a definition is not valid.
    """
    listed = whole.get("cases")
    if not isinstance(listed, list):
        raise InvalidRowError("cases is no list")
    return tuple(_parse_case(item) for item in listed)


def create_cases(seeds: Sequence[BundledCase], tried: Iterable[str]) -> Mapping[str, str]:
    """Create the missing test cases in separate sets.

    Args:
        seeds: the test cases of the bundle.
        tried: scenarios of the run's cells.

    Returns:
        new names of the scenarios whose names mean something else in this database.

    Raises:
        InvalidRowError: there is no free name for a case.
    """
    by_slug = {slug: tuple(group) for slug, group in groupby(sorted(seeds, key=_get_sort_key), lambda seed: seed.slug)}
    names: dict[str, str] = {}
    for slug in sorted({*by_slug, *tried}):
        existing = by_slug.get(slug, ())
        names[slug] = next((name for name in _iter_names(slug) if _is_name_usable(name, existing)), "")
        if not names[slug]:
            raise InvalidRowError(f"there is no free name for the case {slug}")
        _create_case(names[slug], existing)
    return {there: here for there, here in names.items() if there != here}


def _get_sort_key(seed: BundledCase) -> tuple[str, int]:
    return seed.slug, seed.version


def _parse_case(document: Any) -> BundledCase:
    if not isinstance(document, dict) or not all(isinstance(document.get(name), str) for name in _TEXT_FIELDS):
        raise InvalidRowError("a case has no slug, title, kind or definition")
    slug, kind, version, public = document["slug"], document["kind"], document.get("version"), document.get("public")
    if not slug.isascii() or not slug.replace("-", "").replace("_", "").isalnum() or len(slug) > 60:
        raise InvalidRowError(f"{slug[:60]!r} is no name of a case")
    if (
        not isinstance(public, bool)
        or isinstance(version, bool)
        or not isinstance(version, int)
        or version not in range(1, 32768)
    ):
        raise InvalidRowError(f"the case {slug} has no version, or does not say whether it is public")
    try:
        plain = json.loads(document["definition"])
        {CaseSet.Kind.OWN.value: parse_case, CaseSet.Kind.BFCL.value: BfclCase.from_json}[kind](plain)
    except (InvalidCaseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRowError(f"the case {slug} cannot be read: {str(error)[:200]}") from error
    return BundledCase(slug, version, to_column_text(document["title"], 120), kind, public, document["definition"])


def _iter_names(slug: str) -> Iterator[str]:
    """Yield the name itself, then numbered names of at most the same length."""
    yield slug
    for number in range(2, _MAX_NAME_NUMBER):
        ending = f"-{number}"
        yield f"{slug[: -len(ending)]}{ending}"


def _is_name_usable(name: str, seeds: Sequence[BundledCase]) -> bool:
    """Return whether these versions of a case can have this name here.

    Without versions, the name belongs to a scenario that is no test case; no test case here may have it.
    """
    case = Case.objects.select_related("set").filter(slug=name).first()
    if case is None:
        code = any(scenario.slug == name for scenario in scenarios.list_scenarios())
        return not seeds or not (code or Cell.objects.filter(scenario=name).exists())
    here = dict(case.versions.values_list("number", "definition"))
    grows = case.set.source == _BUNDLE_SOURCE
    same = (here.get(seed.version, seed.definition if grows else None) == seed.definition for seed in seeds)
    return bool(seeds) and case.set.kind == seeds[0].kind and all(same)


def _create_case(name: str, seeds: Sequence[BundledCase]) -> None:
    if not seeds:
        return
    case = Case.objects.filter(slug=name).first()
    if case is None:
        case = Case.objects.create(set=_get_or_create_set(seeds[0]), slug=name, title=seeds[0].title or name)
    known = set(case.versions.values_list("number", flat=True))
    missing = [seed for seed in seeds if seed.version not in known]
    CaseVersion.objects.bulk_create(CaseVersion(case=case, number=s.version, definition=s.definition) for s in missing)
    if missing:
        case.current = max(known | {seed.version for seed in missing})
        case.save(update_fields=["current"])


def _get_or_create_set(seed: BundledCase) -> CaseSet:
    """Return the set for a case from a bundle.

    Public and private cases are in different sets, and both are separate from cases written here.
    """
    kind = CaseSet.Kind(seed.kind)
    columns = {"kind": kind, "public": seed.public, **_SET_FIELDS_BY_KIND[kind]}
    found = CaseSet.objects.filter(**columns).first()
    if found is not None:
        return found
    title = f"{'BFCL' if kind == CaseSet.Kind.BFCL else 'Cases'} from bundles, {'public' if seed.public else 'private'}"
    taken = set(CaseSet.objects.filter(name__startswith=title).values_list("name", flat=True))
    free = next(name for name in (title, *(f"{title} {n}" for n in range(2, len(taken) + 3))) if name not in taken)
    return CaseSet.objects.create(name=free, **columns)
