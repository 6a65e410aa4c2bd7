"""What the pages about cases show: sets with their cases, and one case with how it fared."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection
from django.db.models import Prefetch

from toolbench.evals.bfcl.multi_turn.scenario import MultiTurnScenario
from toolbench.evals.types import Scenario
from toolbench.evals.user_cases.expectations import list_schema_violations
from toolbench.evals.user_cases.scenario import UserCaseScenario
from toolbench.evals.user_cases.simulated_tools import describe_results
from toolbench.lab.cases.drafts import CaseDraft, build_draft, render_json
from toolbench.lab.cases.edit import UnknownCaseError, get_case
from toolbench.lab.endpoints.setup_pages import ProviderRow, get_providers
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.models import Case, CaseSet, CaseVersion, Cell, Judgement, Model, Provider, Run
from toolbench.lab.scenarios.case_sets import render_launch_query
from toolbench.lab.scenarios.catalogue import build_scenario
from toolbench.lab.sql import statement
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.wire_formats import MESSAGES

MAX_RUNS_SHOWN = 12
MAX_FAILED_CHECKS_SHOWN = 5
_FAILED_CHECKS = statement("cases/failed_checks")


@dataclass(frozen=True, slots=True)
class CaseSetRow:
    """A set with its cases; `launch` asks the launch form for all of them."""

    set: CaseSet
    cases: tuple[Case, ...]
    launch: str


@dataclass(frozen=True, slots=True)
class FailedCaseCheck:
    """A check that failed, such as `get_weather $.city`: how often, the first trial, and what stood there."""

    name: str
    count: int
    trial: int
    detail: str

    @property
    def is_argument(self) -> bool:
        return " $" in self.name


@dataclass(frozen=True, slots=True)
class CaseRun:
    """One cell that tried the case, and the version that its trials are judged by. `failed_checks` are its failed
    checks, most frequent first; `worst_argument` is the argument that went wrong most, None where none did."""

    run: Run
    cell: Cell
    judged_version: int
    tally: Tally
    answered: Rate
    delivered: Rate
    failed_checks: tuple[FailedCaseCheck, ...]

    @property
    def live(self) -> bool:
        return self.run.state in (Run.State.RUNNING, Run.State.CANCELLING) or self.cell.is_changing

    @property
    def worst_argument(self) -> FailedCaseCheck | None:
        return next((one for one in self.failed_checks if one.is_argument), None)


@dataclass(frozen=True, slots=True)
class CasePage:
    """`tools` are (name, how its results come about); `schema_violations` is what is expected against the tools' own
    schemas."""

    case: Case
    scenario: Scenario
    draft: CaseDraft
    tools: tuple[tuple[str, str], ...]
    versions: tuple[CaseVersion, ...]
    runs: tuple[CaseRun, ...]
    schema_violations: tuple[str, ...]

    @property
    def last_model(self) -> int | None:
        """The one that tried it last."""
        return self.runs[0].cell.config.model_id if self.runs else None

    @property
    def editable(self) -> bool:
        return self.case.set.kind == CaseSet.Kind.OWN

    @property
    def live(self) -> bool:
        return any(one.live for one in self.runs)


def get_case_sets() -> tuple[CaseSetRow, ...]:
    """Sets that hold a case. Two queries."""
    kept = Prefetch("cases", Case.objects.filter(deleted_at=None), to_attr="shown")
    sets = CaseSet.objects.filter(cases__deleted_at=None, cases__isnull=False).distinct().prefetch_related(kept)
    return tuple(CaseSetRow(one, tuple(one.shown), render_launch_query(one, len(one.shown))) for one in sets)


def get_case_page(slug: str) -> CasePage:
    """Raises UnknownCaseError."""
    case = get_case(slug)
    versions = tuple(case.versions.all())
    row = next(one for one in versions if one.number == case.current)
    row.case = case
    scenario = build_scenario(row)
    return CasePage(
        case=case,
        scenario=scenario,
        draft=_build_draft(scenario, row),
        tools=tuple((tool.name, _describe_results(scenario, tool.name)) for tool in scenario.draw_instance(0).tools),
        versions=versions,
        runs=get_case_runs([slug]),
        schema_violations=list_schema_violations(scenario.case) if isinstance(scenario, UserCaseScenario) else (),
    )


def get_editable_case_page(slug: str) -> CasePage:
    """One that can be edited. Raises UnknownCaseError also for what was brought in as it is."""
    found = get_case_page(slug)
    if not found.editable:
        raise UnknownCaseError(f"{found.case} was brought in from {found.case.set.source}; it stays as it is there.")
    return found


def _build_draft(scenario: Scenario, row: CaseVersion) -> CaseDraft:
    """A case of one's own as it was written; of any other what is sent, and what is accepted."""
    if isinstance(scenario, UserCaseScenario):
        return build_draft(scenario.title, scenario.case)
    instance = scenario.draw_instance(0)
    return CaseDraft(
        title=scenario.title,
        tools=render_json([tool.to_openai() for tool in instance.tools]),
        message="\n\n".join((instance.user_text, *(said.text for said in instance.further))),
        expect=render_json(json.loads(row.definition).get("answers", [])),
        system=instance.system,
    )


def _describe_results(scenario: Scenario, tool: str) -> str:
    if isinstance(scenario, MultiTurnScenario):
        return "BFCL's own class, in a process of its own"
    return describe_results(scenario.case.results if isinstance(scenario, UserCaseScenario) else {}, tool)


def get_case_runs(slugs: Iterable[str], limit: int = MAX_RUNS_SHOWN) -> tuple[CaseRun, ...]:
    """The newest cells that tried any of these cases. Three queries."""
    found = Cell.objects.filter(scenario__in=list(slugs), run__deleted_at=None).select_related("run", "config")
    cells = tuple(found.defer("run__request", "config__layers").order_by("-run_id", "position")[:limit])
    wrong = _get_failed_checks([cell.pk for cell in cells])
    again = Judgement.objects.filter(trial__cell__in=cells, current=True).order_by()
    judged = dict(again.values_list("trial__cell_id", "scenario_version").distinct())
    return tuple(
        _build_case_run(
            cell, judged.get(cell.pk, cell.scenario_version), tuple(wrong[cell.pk][:MAX_FAILED_CHECKS_SHOWN])
        )
        for cell in cells
    )


def get_model_choices() -> tuple[tuple[str, tuple[tuple[int, str], ...]], ...]:
    """Models by provider: those that can be asked now, real ones first, then those that cannot, which say so;
    personas are said to be simulated, in the order of the cast. Three queries."""
    models: dict[int, list[Model]] = defaultdict(list)
    for row in Model.objects.filter(retired=False).order_by("name"):
        models[row.provider_id].append(row)
    lines = sorted(get_providers(), key=lambda line: (line.state != "pass", _is_simulated(line), line.provider.name))
    return tuple(
        (_build_title(line), _list_model_choices(line, models[line.provider.pk]))
        for line in lines
        if models[line.provider.pk]
    )


def _is_simulated(line: ProviderRow) -> bool:
    return line.provider.kind == Provider.Kind.SIMULATED


def _build_title(line: ProviderRow) -> str:
    words = "not running" if line.provider.service else "not ready"
    away = "" if line.state == "pass" else f": {words}"
    return f"{line.provider}{away}"


def _list_model_choices(line: ProviderRow, models: list[Model]) -> tuple[tuple[int, str], ...]:
    cast = list(load_personas()) if _is_simulated(line) else []
    place = {f"{prefix}{slug}": at for at, slug in enumerate(cast) for prefix in ("", MESSAGES.name_prefix)}
    ordered = sorted(models, key=lambda model: place.get(model.name, len(place)))
    return tuple((model.pk, f"{model.name}{' (simulated)' if _is_simulated(line) else ''}") for model in ordered)


def _build_case_run(cell: Cell, judged_version: int, wrong: tuple[FailedCaseCheck, ...]) -> CaseRun:
    counts = tally_cells([cell])
    return CaseRun(cell.run, cell, judged_version, counts, counts.answered_success(), counts.delivered(), wrong)


def _get_failed_checks(cells: list[int]) -> dict[int, list[FailedCaseCheck]]:
    found: dict[int, list[FailedCaseCheck]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_FAILED_CHECKS, [cells])
        for cell, name, count, trial, detail in cursor.fetchall():
            found[cell].append(FailedCaseCheck(name, count, trial, detail or ""))
    return found
