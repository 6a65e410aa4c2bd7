"""Pages about test cases: sets with their cases, and one case with its results."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection
from django.db.models import Prefetch

from toolbench.evals.bfcl.multi_turn.scenario import MultiTurnScenario
from toolbench.evals.types import Scenario
from toolbench.evals.user_cases.expectations import list_schema_violations
from toolbench.evals.user_cases.options import WORKSPACE_TOOLS
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
from toolbench.lab.sql import load_statement
from toolbench.providers.simulated.personas import load_personas

MAX_RUNS_SHOWN = 12
MAX_FAILED_CHECKS_SHOWN = 5
_FAILED_CHECKS = load_statement("cases/failed_checks")


@dataclass(frozen=True, slots=True)
class CaseSetRow:
    """A set with its cases.

    Attributes:
        launch: query string of the launch form for all cases of the set.
    """

    set: CaseSet
    cases: tuple[Case, ...]
    launch: str


@dataclass(frozen=True, slots=True)
class FailedCaseCheck:
    """A failed check such as `get_weather $.city`.

    Attributes:
        count: number of failed trials.
        trial: primary key of the first trial.
        detail: the detail of one failed check.
    """

    name: str
    count: int
    trial: int
    detail: str

    @property
    def is_argument(self) -> bool:
        """Return whether the check is about an argument."""
        return " $" in self.name


@dataclass(frozen=True, slots=True)
class CaseRun:
    """A cell that tried the case.

    Attributes:
        judged_version: the case version that its trials are judged by.
        failed_checks: its failed checks, the most frequent first.
    """

    run: Run
    cell: Cell
    judged_version: int
    tally: Tally
    answered: Rate
    delivered: Rate
    failed_checks: tuple[FailedCaseCheck, ...]

    @property
    def live(self) -> bool:
        """Return whether the run or the cell is still changing."""
        return self.run.state in (Run.State.RUNNING, Run.State.CANCELLING) or self.cell.is_changing

    @property
    def worst_argument(self) -> FailedCaseCheck | None:
        """Return the most frequent failed check about an argument, or None."""
        return next((failed_check for failed_check in self.failed_checks if failed_check.is_argument), None)


@dataclass(frozen=True, slots=True)
class CasePage:
    """Everything that the page of a case shows.

    Attributes:
        tools: (name, origin of its results).
        schema_violations: violations of the tools' schemas by the expectation.
    """

    case: Case
    scenario: Scenario
    draft: CaseDraft
    tools: tuple[tuple[str, str], ...]
    versions: tuple[CaseVersion, ...]
    runs: tuple[CaseRun, ...]
    schema_violations: tuple[str, ...]

    @property
    def last_model(self) -> int | None:
        """Return the primary key of the model that tried the case last, or None."""
        return self.runs[0].cell.config.model_id if self.runs else None

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """Return label and text of workspace and settings, where the case has them."""
        texts = (("Workspace", self.draft.workspace), ("Settings", self.draft.settings))
        return tuple((label, text) for label, text in texts if text)

    @property
    def editable(self) -> bool:
        """Return whether the case is one of the user's own."""
        return self.case.set.kind == CaseSet.Kind.OWN

    @property
    def live(self) -> bool:
        """Return whether any of its runs is still changing."""
        return any(run.live for run in self.runs)


def get_case_sets() -> tuple[CaseSetRow, ...]:
    """Return the sets that have a case, with two queries."""
    kept = Prefetch("cases", Case.objects.filter(deleted_at=None), to_attr="shown")
    sets = CaseSet.objects.filter(cases__deleted_at=None, cases__isnull=False).distinct().prefetch_related(kept)
    return tuple(
        CaseSetRow(case_set, tuple(case_set.shown), render_launch_query(case_set, len(case_set.shown)))
        for case_set in sets
    )


def get_case_page(slug: str) -> CasePage:
    """Return the page of a case.

    Raises:
        UnknownCaseError: there is no such case, or it was deleted.
    """
    case = get_case(slug)
    versions = tuple(case.versions.all())
    row = next(version for version in versions if version.number == case.current)
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
    """Return the page of a case that can be edited.

    Raises:
        UnknownCaseError: there is no such case, or it is an imported benchmark case.
    """
    found = get_case_page(slug)
    if not found.editable:
        raise UnknownCaseError(f"{found.case} was brought in from {found.case.set.source}; it stays as it is there.")
    return found


def _build_draft(scenario: Scenario, row: CaseVersion) -> CaseDraft:
    """Return the draft of the user's own case; for any other case, what is sent and what is accepted."""
    if isinstance(scenario, UserCaseScenario):
        return build_draft(scenario.title, scenario.case)
    instance = scenario.draw_instance(0)
    return CaseDraft(
        title=scenario.title,
        tools=render_json([tool.to_openai() for tool in instance.tools]),
        message="\n\n".join((instance.user_text, *(message.text for message in instance.further))),
        expect=render_json(json.loads(row.definition).get("answers", [])),
        system=instance.system,
    )


def _describe_results(scenario: Scenario, tool: str) -> str:
    if isinstance(scenario, MultiTurnScenario):
        return "BFCL's own class, in a process of its own"
    if not isinstance(scenario, UserCaseScenario):
        return describe_results({}, tool)
    if scenario.case.workspace and tool in WORKSPACE_TOOLS and tool not in scenario.case.results:
        return "works on the draft of the state, as in the case study"
    return describe_results(scenario.case.results, tool)


def get_case_runs(slugs: Iterable[str], limit: int = MAX_RUNS_SHOWN) -> tuple[CaseRun, ...]:
    """Return the newest cells that tried any of these cases, with three queries."""
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
    """Return (primary key, name) of the models by provider, with three queries.

    Providers that are ready come first, real ones before simulated ones. Simulated models keep the order of their file.
    """
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
    place = {slug: at for at, slug in enumerate(cast)}
    ordered = sorted(models, key=lambda model: place.get(model.name.rpartition("/")[2], len(place)))
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
