"""All scenarios: those in code, and cases from the database in a given version."""

import json
from collections.abc import Iterable, Mapping

from django.db.models import F, Q, QuerySet

from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.bfcl.cases import BfclCase as BfclCase
from toolbench.evals.bfcl.multi_turn.cases import MULTI_TURN_CATEGORIES as MULTI_TURN
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase
from toolbench.evals.bfcl.multi_turn.scenario import MultiTurnScenario
from toolbench.evals.bfcl.scenario import BFCL_GROUP as BFCL_GROUP
from toolbench.evals.bfcl.scenario import BfclScenario
from toolbench.evals.types import Scenario
from toolbench.evals.user_cases.parse import parse_case
from toolbench.evals.user_cases.scenario import USER_CASE_GROUP, UserCaseScenario
from toolbench.lab.models import Case, CaseSet, CaseVersion, Cell

ScenarioKey = tuple[str, int]  # slug, version


def load_scenario(slug: str, version: int | None = None) -> Scenario:
    """Return a scenario in this version, or in its newest. Scenarios in code need no query.

    A scenario in code whose version is no longer known is returned in its newest version: compare `version`. A deleted
    case is found too.

    Raises:
        KeyError: there is no such scenario, or no such version of a case.
    """
    code = scenarios.list_versions(slug)
    if code:
        return next((scenario for scenario in code if scenario.version == version), code[0])
    version_wanted = F("case__current") if version is None else version
    row = _query_versions().filter(case__slug=slug, number=version_wanted).first() if slug.isprintable() else None
    if row is None:
        raise KeyError(f"there is no scenario {slug}{'' if version is None else f' version {version}'}")
    return build_scenario(row)


def load_scenarios(keys: Iterable[ScenarioKey]) -> Mapping[ScenarioKey, Scenario]:
    """Return the scenarios of these versions, without those that are not known here. One query if one may be a case."""
    unique_keys = set(keys)
    slugs = {slug for slug, _ in unique_keys}
    found = {(slug, scenario.version): scenario for slug in slugs for scenario in scenarios.list_versions(slug)}
    rest = {slug for slug in slugs if not scenarios.list_versions(slug) and slug.isprintable()}
    numbers = {number for _, number in unique_keys}
    rows = _query_versions().filter(case__slug__in=rest, number__in=numbers) if rest else ()
    found |= {(row.case.slug, row.number): build_scenario(row) for row in rows}
    return {key: found[key] for key in unique_keys if key in found}


def load_judging_scenario(slug: str, version: int) -> Scenario:
    """Return the scenario that judges trials of this version: code in the version that was tried, a case in its newest.

    Raises:
        KeyError: there is no such scenario.
    """
    return load_scenario(slug, version if scenarios.list_versions(slug) else None)


def find_scenarios(slugs: Iterable[str]) -> dict[str, Scenario]:
    """Return the scenarios that can be launched now, in the given order. One query if one may be a case."""
    code, unique_slugs = _list_code_scenarios(), list(dict.fromkeys(slugs))
    rows = [slug for slug in unique_slugs if slug not in code and slug.isprintable()]
    current = (
        _query_versions().filter(case__slug__in=rows, case__deleted_at=None, number=F("case__current")) if rows else ()
    )
    found = {**code, **{row.case.slug: build_scenario(row) for row in current}}
    return {slug: found[slug] for slug in unique_slugs if slug in found}


def list_user_cases(most: int) -> tuple[str, ...]:
    """Return the slugs of the newest user cases."""
    cases = Case.objects.filter(deleted_at=None, set__kind=CaseSet.Kind.OWN).order_by("-pk")
    return tuple(cases.values_list("slug", flat=True)[:most])


def sort_by_catalogue(found: Iterable[Scenario]) -> tuple[Scenario, ...]:
    """Sort scenarios in code by the catalogue; cases follow in their order."""
    places = {slug: place for place, slug in enumerate(_list_code_scenarios())}
    return tuple(sorted(found, key=lambda scenario: places.get(scenario.slug, len(places))))


def load_frozen_cases(config_ids: Iterable[int]) -> Mapping[ScenarioKey, Scenario]:
    """Return the cases of these configurations in the versions of their launch. One query, two if there are cases."""
    named = Q(scenario_group=BFCL_GROUP) | Q(scenario_group__startswith=USER_CASE_GROUP)
    cells = Cell.objects.filter(named, config_id__in=list(config_ids)).order_by()
    pairs = set(cells.values_list("scenario", "scenario_version").distinct())
    if not pairs:
        return {}
    rows = _query_versions().filter(case__slug__in={slug for slug, _ in pairs})
    return {(row.case.slug, row.number): build_scenario(row) for row in rows if (row.case.slug, row.number) in pairs}


def is_version_available(slug: str, version: int) -> bool:
    """Return whether the version can be tried again: a case always, code while its version is known."""
    try:
        return load_scenario(slug, version).version == version
    except KeyError:
        return False


def build_scenario(row: CaseVersion) -> Scenario:
    """Build the scenario of a case's version."""
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
    if definition["category"] in MULTI_TURN:
        return MultiTurnScenario(case.slug, row.number, case.title, MultiTurnCase.from_json(definition), public=public)
    return BfclScenario(case.slug, row.number, case.title, BfclCase.from_json(definition), public=public)


def is_private(slug: str) -> bool:
    """Return whether a scenario is a case of a private set: its prompts are not exported by default."""
    return (
        slug not in _list_code_scenarios()
        and not CaseVersion.objects.filter(case__slug=slug, case__set__public=True).exists()
    )


def _list_code_scenarios() -> Mapping[str, Scenario]:
    return {scenario.slug: scenario for scenario in scenarios.list_scenarios()}


def _query_versions() -> QuerySet[CaseVersion]:
    return CaseVersion.objects.select_related("case__set")
