"""Data of the pages about test cases: sets with their cases, and one case with its results."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
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
    """Check that failed in failed trials of a cell.

    Attributes:
        name: for a check about an argument, its tool and path, such as `get_weather $.city`.
        count: number of trials in which the check failed.
        trial: primary key of the first of these trials.
        detail: detail of the check in one of these trials.
    """

    name: str
    count: int
    trial: int
    detail: str

    @property
    def is_argument(self) -> bool:
        """Whether the check is about an argument."""
        return " $" in self.name


@dataclass(frozen=True, slots=True)
class CaseRun:
    """Cell with trials of the case.

    Attributes:
        judged_version: version of the case that judged its trials: the version of the cell until they are re-judged. If
            different versions judged them, it is one of these.
        answered: answered success.
        delivered: end-to-end success.
        failed_checks: its failed checks, the most frequent first, at most MAX_FAILED_CHECKS_SHOWN.
        worst_argument: the most frequent of all its failed checks about an argument; None without one.
    """

    run: Run
    cell: Cell
    judged_version: int
    tally: Tally
    answered: Rate
    delivered: Rate
    failed_checks: tuple[FailedCaseCheck, ...]
    worst_argument: FailedCaseCheck | None

    @property
    def live(self) -> bool:
        """Whether the run or the cell is still changing."""
        return self.run.state in (Run.State.RUNNING, Run.State.CANCELLING) or self.cell.is_changing


@dataclass(frozen=True, slots=True)
class CasePage:
    """Data of the page of a case.

    Attributes:
        draft: the case as the form shows it; for a benchmark case, its request and accepted answers.
        tools: name of each tool, with a description of where its results come from.
        runs: the newest cells with trials of the case, the newest first.
        schema_violations: sentences about where the expectation violates the schemas of the tools.
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
        """Primary key of the model that ran the case last; None if there is no run or the model was deleted."""
        return self.runs[0].cell.config.model_id if self.runs else None

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """Label and text of workspace and settings, if the case has them."""
        texts = (("Workspace", self.draft.workspace), ("Settings", self.draft.settings))
        return tuple((label, text) for label, text in texts if text)

    @property
    def editable(self) -> bool:
        """Whether the case is a user case: neither an imported benchmark case nor a conversation."""
        return self.case.set.kind == CaseSet.Kind.OWN

    @property
    def is_conversation(self) -> bool:
        """Whether the case is a conversation of the playground, which has a page of its own."""
        return self.case.set.kind == CaseSet.Kind.DRAFT

    @property
    def live(self) -> bool:
        """Whether any of its runs is still changing."""
        return any(run.live for run in self.runs)


def get_case_sets() -> tuple[CaseSetRow, ...]:
    """Return the sets that have a case, without the set of conversations, with two queries."""
    prefetch = Prefetch("cases", Case.objects.filter(deleted_at=None), to_attr="existing_cases")
    sets = CaseSet.objects.filter(cases__deleted_at=None, cases__isnull=False).exclude(kind=CaseSet.Kind.DRAFT)
    return tuple(
        CaseSetRow(
            case_set, tuple(case_set.existing_cases), render_launch_query(case_set, len(case_set.existing_cases))
        )
        for case_set in sets.distinct().prefetch_related(prefetch)
    )


def get_case_page(slug: str) -> CasePage:
    """Return the page of a case.

    Raises:
        UnknownCaseError: there is no such case, or it was deleted.
    """
    case = get_case(slug)
    versions = tuple(case.versions.all())
    current = next(version for version in versions if version.number == case.current)
    current.case = case
    scenario = build_scenario(current)
    return CasePage(
        case=case,
        scenario=scenario,
        draft=_build_case_draft(scenario, current),
        tools=tuple((tool.name, _describe_results(scenario, tool.name)) for tool in scenario.draw_instance(0).tools),
        versions=versions,
        runs=get_case_runs([slug]),
        schema_violations=list_schema_violations(scenario.case) if isinstance(scenario, UserCaseScenario) else (),
    )


def get_editable_case_page(slug: str) -> CasePage:
    """Return the page of a case that can be edited.

    Raises:
        UnknownCaseError: there is no such case, or it is an imported benchmark case or a conversation.
    """
    page = get_case_page(slug)
    if page.is_conversation:
        raise UnknownCaseError(f"{page.case} is a conversation of the playground. Save it as a test case to edit it.")
    if not page.editable:
        raise UnknownCaseError(f"{page.case} was imported from {page.case.set.source} and cannot be edited.")
    return page


def _build_case_draft(scenario: Scenario, version: CaseVersion) -> CaseDraft:
    """Return the draft of a user case; for an imported benchmark case, a draft of its request and accepted answers."""
    if isinstance(scenario, UserCaseScenario):
        return build_draft(scenario.title, scenario.case)
    instance = scenario.draw_instance(0)
    return CaseDraft(
        title=scenario.title,
        tools=render_json([tool.to_openai() for tool in instance.tools]),
        message="\n\n".join((instance.user_text, *(message.text for message in instance.further))),
        expect=render_json(json.loads(version.definition).get("answers", [])),
        system=instance.system,
    )


def _describe_results(scenario: Scenario, tool: str) -> str:
    if isinstance(scenario, MultiTurnScenario):
        return "computed by BFCL's class, in a separate process"
    if not isinstance(scenario, UserCaseScenario):
        return describe_results({}, tool)
    if scenario.case.workspace and tool in WORKSPACE_TOOLS and tool not in scenario.case.results:
        return "works on the draft of the state, as in the case study"
    return describe_results(scenario.case.results, tool)


def get_case_runs(slugs: Iterable[str], limit: int = MAX_RUNS_SHOWN) -> tuple[CaseRun, ...]:
    """Return the cells with trials of these cases, at most `limit`, newest run first, with three queries."""
    rows = Cell.objects.filter(scenario__in=list(slugs), run__deleted_at=None).select_related("run", "config")
    cells = tuple(rows.defer("run__request", "config__layers").order_by("-run_id", "position")[:limit])
    failed_checks = _get_failed_checks([cell.pk for cell in cells])
    judgements = Judgement.objects.filter_last_executions().filter(trial__cell__in=cells, current=True).order_by()
    judged_versions = dict(judgements.values_list("trial__cell_id", "scenario_version").distinct())
    return tuple(
        _build_case_run(cell, judged_versions.get(cell.pk, cell.scenario_version), failed_checks[cell.pk])
        for cell in cells
    )


def get_model_choices() -> tuple[tuple[str, tuple[tuple[int, str], ...]], ...]:
    """Return the models that are not retired, by provider, as choices of a form.

    The call takes two queries, and two more if any provider has a budget.

    Ready providers come first. Among them, and among the others, real providers come before simulated ones, and
    providers with an address before local servers. Simulated models are in the order of the file that defines them,
    other models by name.

    Returns:
        Pairs of a provider's title and its models; each model is a pair of primary key and label.
    """
    models: dict[int, list[Model]] = defaultdict(list)
    for model in Model.objects.filter(retired=False).order_by("name"):
        models[model.provider_id].append(model)
    rows = sorted(get_providers(), key=_build_provider_sort_key)
    return tuple(
        (_build_provider_title(row), _list_model_choices(row, models[row.provider.pk]))
        for row in rows
        if models[row.provider.pk]
    )


def _build_provider_sort_key(row: ProviderRow) -> tuple[bool, bool, bool, str]:
    return row.state != "pass", _is_simulated(row), bool(row.provider.service), row.provider.name


def _is_simulated(row: ProviderRow) -> bool:
    return row.provider.kind == Provider.Kind.SIMULATED


def _build_provider_title(row: ProviderRow) -> str:
    if row.state == "pass":
        return str(row.provider)
    return f"{row.provider}: {'not running' if row.provider.service else 'not ready'}"


def _list_model_choices(row: ProviderRow, models: list[Model]) -> tuple[tuple[int, str], ...]:
    slugs = list(load_personas()) if _is_simulated(row) else []
    positions = {slug: position for position, slug in enumerate(slugs)}
    ordered = sorted(models, key=lambda model: positions.get(model.name.rpartition("/")[2], len(slugs)))
    return tuple((model.pk, f"{model.name}{' (simulated)' if _is_simulated(row) else ''}") for model in ordered)


def _build_case_run(cell: Cell, judged_version: int, failed_checks: Sequence[FailedCaseCheck]) -> CaseRun:
    """Build the row of a cell from all its failed checks, the most frequent first."""
    tally = tally_cells([cell])
    return CaseRun(
        cell.run,
        cell,
        judged_version,
        tally,
        tally.compute_answered_success(),
        tally.compute_end_to_end_success(),
        tuple(failed_checks[:MAX_FAILED_CHECKS_SHOWN]),
        next((failed_check for failed_check in failed_checks if failed_check.is_argument), None),
    )


def _get_failed_checks(cell_ids: list[int]) -> dict[int, list[FailedCaseCheck]]:
    """Return the failed checks of each cell, the most frequent first."""
    failed_checks: dict[int, list[FailedCaseCheck]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_FAILED_CHECKS, [cell_ids])
        for cell_id, name, count, trial, detail in cursor.fetchall():
            failed_checks[cell_id].append(FailedCaseCheck(name, count, trial, detail or ""))
    return failed_checks
