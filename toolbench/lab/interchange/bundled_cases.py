"""Test cases in a bundle, in the versions that its trials or their verdicts used."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.user_cases.parse import InvalidCaseError
from toolbench.lab.cases.bfcl_import import BFCL_LICENCE, BFCL_LINK
from toolbench.lab.interchange.row_json import InvalidRowError
from toolbench.lab.models import Case, CaseSet, CaseVersion, Cell
from toolbench.lab.scenarios.catalogue import build_scenario
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
_MAX_NAME_NUMBER = 999
# SyntaxError and MemoryError: the expected answers of BFCL cases with several turns are parsed as Python.
_DEFINITION_ERRORS = (
    *(InvalidCaseError, ValueError, TypeError, LookupError, AttributeError),
    *(RecursionError, SyntaxError, MemoryError),
)


@dataclass(frozen=True, slots=True)
class BundledCase:
    """One version of a test case in a bundle.

    Attributes:
        slug: slug of the case and of its scenario.
        version: number of the version, from 1.
        title: name shown on pages.
        kind: a value of `CaseSet.Kind`.
        public: whether its set is public.
        definition: JSON of the version as text, which keeps the order of its keys: requests send them in this order.
    """

    slug: str
    version: int
    title: str
    kind: str
    public: bool
    definition: str


def get_bundled_cases(used_versions: Iterable[tuple[str, int]]) -> tuple[BundledCase, ...]:
    """Return the given versions of test cases, sorted by slug and version, with one query.

    Args:
        used_versions: pairs of a scenario's slug and version. Pairs that are no version of a test case are skipped.
    """
    versions = set(used_versions)
    rows = CaseVersion.objects.select_related("case__set").filter(case__slug__in={slug for slug, _ in versions})
    used_rows = (row for row in rows.order_by("case__slug", "number") if (row.case.slug, row.number) in versions)
    return tuple(
        BundledCase(row.case.slug, row.number, row.case.title, _choose_kind(row), row.case.set.public, row.definition)
        for row in used_rows
    )


def _choose_kind(row: CaseVersion) -> str:
    """Return the kind of a case in a bundle, in which a draft of the playground is a user's own case."""
    kind = row.case.set.kind
    return CaseSet.Kind.OWN.value if kind == CaseSet.Kind.DRAFT else kind


def cases_to_json(bundled_cases: Iterable[BundledCase]) -> JsonObject:
    """Return the JSON of the bundle's member `evidence/cases.json`."""
    return {"cases": [asdict(bundled_case) for bundled_case in bundled_cases]}


def parse_cases(document: JsonObject) -> tuple[BundledCase, ...]:
    """Return the test cases that `cases_to_json` wrote.

    Raises:
        InvalidRowError: `document` has another structure, or a definition is not valid.
    """
    items = document.get("cases")
    if not isinstance(items, list):
        raise InvalidRowError("cases is not a list")
    return tuple(_parse_case(item) for item in items)


def create_cases(bundled_cases: Sequence[BundledCase], scenario_names: Iterable[str]) -> Mapping[str, str]:
    """Create the test cases and versions that this database lacks.

    New test cases are created in sets that have only cases from bundles.

    Args:
        bundled_cases: the test cases of the bundle.
        scenario_names: slugs of the scenarios of the run's cells, test cases or not.

    Returns:
        New slug by old slug, of the scenarios whose old slugs stand for other scenarios in this database.

    Raises:
        InvalidRowError: there is no free slug for a scenario.
    """
    ordered = sorted(bundled_cases, key=lambda bundled_case: (bundled_case.slug, bundled_case.version))
    versions_by_slug = {slug: tuple(group) for slug, group in groupby(ordered, lambda bundled_case: bundled_case.slug)}
    new_names: dict[str, str] = {}
    for slug in sorted({*versions_by_slug, *scenario_names}):
        versions = versions_by_slug.get(slug, ())
        new_names[slug] = next((name for name in _iter_names(slug) if _is_name_usable(name, versions)), "")
        if not new_names[slug]:
            raise InvalidRowError(f"there is no free name for the test case {slug}")
        _create_case(new_names[slug], versions)
    return {old_name: new_name for old_name, new_name in new_names.items() if old_name != new_name}


def _parse_case(document: Any) -> BundledCase:
    if not isinstance(document, dict) or not all(isinstance(document.get(name), str) for name in _TEXT_FIELDS):
        raise InvalidRowError("a test case has no slug, title, kind or definition")
    slug, kind, version, public = document["slug"], document["kind"], document.get("version"), document.get("public")
    if not slug.isascii() or not slug.replace("-", "").replace("_", "").isalnum() or len(slug) > 60:
        raise InvalidRowError(f"{slug[:60]!r} is not a slug of a test case")
    if (
        not isinstance(public, bool)
        or isinstance(version, bool)
        or not isinstance(version, int)
        or version not in range(1, 32768)
    ):
        raise InvalidRowError(f"the test case {slug} has no version, or does not say whether it is public")
    if kind not in _SET_FIELDS_BY_KIND:
        raise InvalidRowError(f"the test case {slug} cannot be read: its kind is unknown")
    case = BundledCase(slug, version, to_column_text(document["title"], 120), kind, public, document["definition"])
    _check_definition(case)
    return case


def _check_definition(bundled_case: BundledCase) -> None:
    """Check that the scenario of a case can be built and drawn.

    Raises:
        InvalidRowError: it cannot.
    """
    case_set = CaseSet(kind=bundled_case.kind, public=bundled_case.public)
    case = Case(set=case_set, slug=bundled_case.slug, title=bundled_case.title)
    row = CaseVersion(case=case, number=bundled_case.version, definition=bundled_case.definition)
    try:
        build_scenario(row).draw_instance(0)
    except _DEFINITION_ERRORS as error:
        raise InvalidRowError(f"the test case {bundled_case.slug} cannot be read: {str(error)[:200]}") from error


def _iter_names(slug: str) -> Iterator[str]:
    """Yield the slug, then slugs whose last characters are replaced by `-2` to `-999`, so that none is too long."""
    yield slug
    for number in range(2, _MAX_NAME_NUMBER + 1):
        suffix = f"-{number}"
        yield f"{slug[: -len(suffix)]}{suffix}"


def _is_name_usable(name: str, versions: Sequence[BundledCase]) -> bool:
    """Return whether this database can give `name` to these versions of a case.

    A name that no case in this database has is usable unless a scenario in code or a stored cell has it.

    The name of a stored case is usable if the stored case has the same kind and all the versions, with the same
    definitions. The stored case may lack versions if its set is one of users' cases from bundles, public or private as
    in the bundle, and if it shares a version or the title with the case of the bundle.

    Args:
        name: the slug.
        versions: versions of the case; empty for a scenario that is not a test case, for which a name is usable unless
            a test case in this database has it.
    """
    case = Case.objects.select_related("set").filter(slug=name).first()
    if case is None:
        is_code_scenario = any(scenario.slug == name for scenario in scenarios.list_scenarios())
        return not versions or not (is_code_scenario or Cell.objects.filter(scenario=name).exists())
    if not versions or case.set.kind != versions[0].kind:
        return False
    stored_definitions = dict(case.versions.values_list("number", "definition"))
    stored_versions = [version for version in versions if version.version in stored_definitions]
    if any(stored_definitions[version.version] != version.definition for version in stored_versions):
        return False
    is_from_same_set = case.set.source == _BUNDLE_SOURCE and case.set.public == versions[0].public
    is_same_case = bool(stored_versions) or case.title == (versions[0].title or name)
    return len(stored_versions) == len(versions) or (is_from_same_set and is_same_case)


def _create_case(name: str, versions: Sequence[BundledCase]) -> None:
    """Create the missing versions of a case, and the case if it is missing; the highest version becomes current."""
    if not versions:
        return
    case = Case.objects.filter(slug=name).first()
    if case is None:
        case = Case.objects.create(set=_get_or_create_set(versions[0]), slug=name, title=versions[0].title or name)
    stored_numbers = set(case.versions.values_list("number", flat=True))
    missing = [version for version in versions if version.version not in stored_numbers]
    CaseVersion.objects.bulk_create(
        CaseVersion(case=case, number=version.version, definition=version.definition) for version in missing
    )
    if missing:
        case.current = max(stored_numbers | {version.version for version in missing})
        case.save(update_fields=["current"])


def _get_or_create_set(bundled_case: BundledCase) -> CaseSet:
    """Return the set for a case from a bundle.

    Public and private cases get different sets. Sets that a user or an import of BFCL created are not used.
    """
    kind = CaseSet.Kind(bundled_case.kind)
    columns = {"kind": kind, "public": bundled_case.public, **_SET_FIELDS_BY_KIND[kind]}
    existing_set = CaseSet.objects.filter(**columns).first()
    if existing_set is not None:
        return existing_set
    source_name = "BFCL" if kind == CaseSet.Kind.BFCL else "Cases"
    title = f"{source_name} from bundles, {'public' if bundled_case.public else 'private'}"
    taken_names = set(CaseSet.objects.filter(name__startswith=title).values_list("name", flat=True))
    numbered = (f"{title} {number}" for number in range(2, len(taken_names) + 3))
    free_name = next(name for name in (title, *numbered) if name not in taken_names)
    return CaseSet.objects.create(name=free_name, **columns)
