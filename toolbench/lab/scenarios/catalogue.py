"""Catalogue of all scenarios: those in code and the versions of cases in the database."""

import json
from collections.abc import Iterable, Mapping

from django.db.models import F, Q, QuerySet

from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.multi_turn.cases import MULTI_TURN_CATEGORIES, MultiTurnCase
from toolbench.evals.bfcl.multi_turn.scenario import MultiTurnScenario
from toolbench.evals.bfcl.scenario import BFCL_GROUP, BfclScenario
from toolbench.evals.types import Scenario
from toolbench.evals.user_cases.parse import parse_case
from toolbench.evals.user_cases.scenario import USER_CASE_GROUP, UserCaseScenario
from toolbench.lab.models import Case, CaseSet, CaseVersion, Cell

ScenarioKey = tuple[str, int]  # slug, version
MAX_SEED = 0x7FFFFFFF  # largest seed of instances and of sampling, which every endpoint accepts


def load_scenario(slug: str, version: int | None = None) -> Scenario:
    """Return a scenario; with one query if it is a case, else without a query. A deleted case is returned too.

    Args:
        slug: the slug.
        version: the version; None for the newest. For a scenario in code, an unknown version gives the newest, too.

    Raises:
        KeyError: there is no such scenario, or no such version of a case.
    """
    code_versions = scenarios.list_versions(slug)
    if code_versions:
        return next((scenario for scenario in code_versions if scenario.version == version), code_versions[0])
    number = F("case__current") if version is None else version
    # PostgreSQL refuses a text with a NUL character, which no slug has.
    row = _query_versions().filter(case__slug=slug, number=number).first() if slug.isprintable() else None
    if row is None:
        raise KeyError(f"there is no scenario {slug}{'' if version is None else f' version {version}'}")
    return build_scenario(row)


def load_scenarios(keys: Iterable[ScenarioKey]) -> Mapping[ScenarioKey, Scenario]:
    """Return the scenarios of these keys. An unknown scenario or version has no entry.

    The call takes one query if a slug is not that of a scenario in code, otherwise none.
    """
    unique_keys = set(keys)
    slugs = {slug for slug, _ in unique_keys}
    by_key = {(slug, scenario.version): scenario for slug in slugs for scenario in scenarios.list_versions(slug)}
    case_slugs = {slug for slug in slugs if not scenarios.list_versions(slug) and slug.isprintable()}
    numbers = {number for _, number in unique_keys}
    rows = _query_versions().filter(case__slug__in=case_slugs, number__in=numbers) if case_slugs else ()
    by_key |= {(row.case.slug, row.number): build_scenario(row) for row in rows}
    return {key: by_key[key] for key in unique_keys if key in by_key}


def load_judging_scenario(slug: str, version: int) -> Scenario:
    """Return the scenario that judges trials of this version.

    For a scenario in code, this is the same version or, if code no longer has it, the newest one. For a case, it is
    the newest version.

    Raises:
        KeyError: there is no such scenario.
    """
    return load_scenario(slug, version if scenarios.list_versions(slug) else None)


def find_scenarios(slugs: Iterable[str]) -> dict[str, Scenario]:
    """Return the newest versions of these scenarios, in the given order.

    An unknown scenario or deleted case has no entry. The call takes one query if a slug is not that of a scenario in
    code, otherwise none.
    """
    code_scenarios, unique_slugs = _get_code_scenarios(), list(dict.fromkeys(slugs))
    case_slugs = [slug for slug in unique_slugs if slug not in code_scenarios and slug.isprintable()]
    newest = _query_versions().filter(case__slug__in=case_slugs, case__deleted_at=None, number=F("case__current"))
    rows = newest if case_slugs else ()
    by_slug = {**code_scenarios, **{row.case.slug: build_scenario(row) for row in rows}}
    return {slug: by_slug[slug] for slug in unique_slugs if slug in by_slug}


def list_user_case_slugs(limit: int) -> tuple[str, ...]:
    """Return the slugs of the newest test cases of users, at most `limit`, the newest first."""
    cases = Case.objects.filter(deleted_at=None, set__kind=CaseSet.Kind.OWN).order_by("-pk")
    return tuple(cases.values_list("slug", flat=True)[:limit])


def sort_by_catalogue(unsorted: Iterable[Scenario]) -> tuple[Scenario, ...]:
    """Put scenarios in code in the order of the catalogue; cases follow in the given order."""
    positions = {slug: position for position, slug in enumerate(_get_code_scenarios())}
    return tuple(sorted(unsorted, key=lambda scenario: positions.get(scenario.slug, len(positions))))


def load_frozen_cases(config_ids: Iterable[int]) -> Mapping[ScenarioKey, Scenario]:
    """Return the cases in the cells of these configurations, in the versions of the cells.

    The call takes one query, or two if there are cases.
    """
    is_case = Q(scenario_group=BFCL_GROUP) | Q(scenario_group__startswith=USER_CASE_GROUP)
    cells = Cell.objects.filter(is_case, config_id__in=list(config_ids)).order_by()
    keys = set(cells.values_list("scenario", "scenario_version").distinct())
    if not keys:
        return {}
    rows = _query_versions().filter(case__slug__in={slug for slug, _ in keys})
    return {(row.case.slug, row.number): build_scenario(row) for row in rows if (row.case.slug, row.number) in keys}


def is_version_available(slug: str, version: int) -> bool:
    """Return whether a new trial can use this version: code or the database still has it."""
    try:
        return load_scenario(slug, version).version == version
    except KeyError:
        return False


def build_scenario(row: CaseVersion) -> Scenario:
    """Build the scenario of a version of a case."""
    case, definition = row.case, json.loads(row.definition)
    if case.set.kind == CaseSet.Kind.BFCL:
        return _build_bfcl_scenario(row, definition)
    return UserCaseScenario(
        slug=case.slug,
        version=row.number,
        title=case.title,
        case=parse_case(definition),
        public=case.set.public,
    )


def _build_bfcl_scenario(row: CaseVersion, definition: JsonObject) -> Scenario:
    case, public = row.case, row.case.set.public
    if definition["category"] in MULTI_TURN_CATEGORIES:
        return MultiTurnScenario(case.slug, row.number, case.title, MultiTurnCase.from_json(definition), public=public)
    return BfclScenario(case.slug, row.number, case.title, BfclCase.from_json(definition), public=public)


def find_private(slugs: Iterable[str]) -> frozenset[str]:
    """Return those of the slugs that belong to cases of private sets, whose prompts are not exported by default.

    An unknown slug counts as private. The call takes one query if a slug is not that of a scenario in code, otherwise
    none.
    """
    case_slugs = frozenset(slugs).difference(_get_code_scenarios())
    public = Case.objects.filter(slug__in=case_slugs, set__public=True)
    return case_slugs.difference(public.values_list("slug", flat=True))


def _get_code_scenarios() -> Mapping[str, Scenario]:
    return {scenario.slug: scenario for scenario in scenarios.list_scenarios()}


def _query_versions() -> QuerySet[CaseVersion]:
    return CaseVersion.objects.select_related("case__set")
