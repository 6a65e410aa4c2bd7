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
_NAME_NUMBER_END = 1000


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


def get_bundled_cases(used_versions: Iterable[tuple[str, int]]) -> tuple[BundledCase, ...]:
    """Return the bundled form of the given test case versions, sorted by slug and version. One query.

    Args:
        used_versions: pairs of scenario name and version. Pairs that are no test case are skipped.
    """
    tried_slugs = set(used_versions)
    rows = CaseVersion.objects.select_related("case__set").filter(case__slug__in={slug for slug, _ in tried_slugs})
    used_rows = (row for row in rows.order_by("case__slug", "number") if (row.case.slug, row.number) in tried_slugs)
    return tuple(
        BundledCase(row.case.slug, row.number, row.case.title, row.case.set.kind, row.case.set.public, row.definition)
        for row in used_rows
    )


def cases_to_json(bundled_cases: Iterable[BundledCase]) -> JsonObject:
    """Return the JSON of the bundle's member `evidence/cases.json`."""
    return {"cases": [asdict(seed) for seed in bundled_cases]}


def parse_cases(document: JsonObject) -> tuple[BundledCase, ...]:
    """Return the test cases that `cases_to_json` wrote.

    Raises:
        InvalidRowError: `document` has another structure, or a definition is not valid.
    """
    items = document.get("cases")
    if not isinstance(items, list):
        raise InvalidRowError("cases is no list")
    return tuple(_parse_case(item) for item in items)


def create_cases(bundled_cases: Sequence[BundledCase], scenario_names: Iterable[str]) -> Mapping[str, str]:
    """Create the test cases and versions that this database lacks, in sets kept apart from its own cases.

    Args:
        bundled_cases: the test cases of the bundle.
        scenario_names: scenarios of the run's cells.

    Returns:
        new name by old name, only of the scenarios whose names mean something else in this database.

    Raises:
        InvalidRowError: there is no free name for a case.
    """
    by_slug = {
        slug: tuple(group) for slug, group in groupby(sorted(bundled_cases, key=_get_sort_key), lambda seed: seed.slug)
    }
    new_names: dict[str, str] = {}
    for slug in sorted({*by_slug, *scenario_names}):
        versions = by_slug.get(slug, ())
        new_names[slug] = next((name for name in _iter_names(slug) if _is_name_usable(name, versions)), "")
        if not new_names[slug]:
            raise InvalidRowError(f"there is no free name for the case {slug}")
        _create_case(new_names[slug], versions)
    return {there: here for there, here in new_names.items() if there != here}


def _get_sort_key(bundled_case: BundledCase) -> tuple[str, int]:
    return bundled_case.slug, bundled_case.version


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
        definition = json.loads(document["definition"])
        {CaseSet.Kind.OWN.value: parse_case, CaseSet.Kind.BFCL.value: BfclCase.from_json}[kind](definition)
    except (InvalidCaseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRowError(f"the case {slug} cannot be read: {str(error)[:200]}") from error
    return BundledCase(slug, version, to_column_text(document["title"], 120), kind, public, document["definition"])


def _iter_names(slug: str) -> Iterator[str]:
    """Yield the slug, then numbered names (`-2` to `-999`) cut to at most the slug's length."""
    yield slug
    for number in range(2, _NAME_NUMBER_END):
        suffix = f"-{number}"
        yield f"{slug[: -len(suffix)]}{suffix}"


def _is_name_usable(name: str, versions: Sequence[BundledCase]) -> bool:
    """Return whether this database can give `name` to these versions of a case.

    A name in use is usable only for the same case: the same kind, and no version with another definition. A set from a
    bundle may get new versions; any other set must already have all of them. Empty `versions` stand for a scenario that
    is no test case; its name is usable unless a test case here has it.
    """
    case = Case.objects.select_related("set").filter(slug=name).first()
    if case is None:
        is_code_scenario = any(scenario.slug == name for scenario in scenarios.list_scenarios())
        return not versions or not (is_code_scenario or Cell.objects.filter(scenario=name).exists())
    stored_definitions = dict(case.versions.values_list("number", "definition"))
    is_bundle_set = case.set.source == _BUNDLE_SOURCE
    are_definitions_equal = (
        stored_definitions.get(seed.version, seed.definition if is_bundle_set else None) == seed.definition
        for seed in versions
    )
    return bool(versions) and case.set.kind == versions[0].kind and all(are_definitions_equal)


def _create_case(name: str, versions: Sequence[BundledCase]) -> None:
    if not versions:
        return
    case = Case.objects.filter(slug=name).first()
    if case is None:
        case = Case.objects.create(set=_get_or_create_set(versions[0]), slug=name, title=versions[0].title or name)
    stored_numbers = set(case.versions.values_list("number", flat=True))
    missing = [seed for seed in versions if seed.version not in stored_numbers]
    CaseVersion.objects.bulk_create(CaseVersion(case=case, number=s.version, definition=s.definition) for s in missing)
    if missing:
        case.current = max(stored_numbers | {seed.version for seed in missing})
        case.save(update_fields=["current"])


def _get_or_create_set(bundled_case: BundledCase) -> CaseSet:
    """Return the set for a case from a bundle.

    Public and private cases get different sets, and both are separate from sets written in this installation.
    """
    kind = CaseSet.Kind(bundled_case.kind)
    columns = {"kind": kind, "public": bundled_case.public, **_SET_FIELDS_BY_KIND[kind]}
    existing_set = CaseSet.objects.filter(**columns).first()
    if existing_set is not None:
        return existing_set
    source_name = "BFCL" if kind == CaseSet.Kind.BFCL else "Cases"
    title = f"{source_name} from bundles, {'public' if bundled_case.public else 'private'}"
    taken_names = set(CaseSet.objects.filter(name__startswith=title).values_list("name", flat=True))
    free_name = next(
        name for name in (title, *(f"{title} {n}" for n in range(2, len(taken_names) + 3))) if name not in taken_names
    )
    return CaseSet.objects.create(name=free_name, **columns)
