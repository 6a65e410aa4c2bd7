"""Operations on results: metrics, matrix, comparison, failures, latency, replays, re-judged trials."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from ninja import Query, Router

from toolbench.api.authentication import LAUNCH, READ, record
from toolbench.api.documents.comparisons import ComparisonDocument, SidesDocument, build_compare_parameters
from toolbench.api.documents.replays import RejudgingDocument, WhatIfBody, WhatIfDocument
from toolbench.api.documents.results import (
    FailuresDocument,
    FailuresParameters,
    LatencyDocument,
    LatencyParameters,
    MatrixDocument,
    MatrixParameters,
    MetricDocument,
    build_table,
)
from toolbench.api.operations.runs import get_run_or_404
from toolbench.api.problems import (
    FieldProblem,
    ProblemError,
    build_field_problem,
    find_unreadable_problem,
    list_excluded_names,
)
from toolbench.lab.accounts.audit import Action
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.values import Metric
from toolbench.lab.models import Run
from toolbench.lab.replays.queue import find_rejudging, request_rejudging
from toolbench.lab.replays.rejudge import get_changes
from toolbench.lab.replays.what_if import SCOPE_KINDS, NothingToReplayError, ReplayScope
from toolbench.lab.replays.what_if_page import WhatIfPage, get_what_if_page
from toolbench.lab.replays.what_if_settings import LIMIT_KEYS, WhatIfSettings
from toolbench.lab.results.compare.baseline import BaselineComparison
from toolbench.lab.results.compare.export import export_baseline, export_pair
from toolbench.lab.results.compare.page import ChangedInstance, get_sides_page
from toolbench.lab.results.compare.query import PARAMETER_NAMES, SUCCESS_METRICS, CompareQuery
from toolbench.lab.results.failures.page import get_failures
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.latency.page import LatencyRow, get_latency
from toolbench.lab.results.latency.query import LatencyQuery
from toolbench.lab.results.matrix.export import export_matrix, export_measured
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import choose_scope, get_matrix

router = Router()
# Members of WhatIfBody by the parameter of the page What-if, where their names differ.
_WHAT_IF_MEMBERS = {"preset": "presets", "format": "text_format"}


@router.get("/metrics", response=list[MetricDocument], auth=READ)
def list_metrics(request: HttpRequest) -> tuple[Metric, ...]:
    """List the metrics with their denominators."""
    return tuple(METRICS.values())


@router.get("/matrix", response=MatrixDocument, auth=READ)
def get_matrix_table(request: HttpRequest, query: Query[MatrixParameters]) -> Any:
    """Return the matrix with every metric."""
    matrix_query = MatrixQuery.from_query(request.GET)
    if problem := find_unreadable_problem((*matrix_query.ignored, *list_excluded_names(request.GET))):
        return problem
    matrix_query = choose_scope(matrix_query)
    matrix = None if matrix_query.scope == "published" else get_matrix(matrix_query)
    return {
        "scope": matrix_query.scope,
        "target": matrix_query.target,
        "groups": matrix.scenario_groups if matrix else (),
        "warnings": matrix.warnings if matrix else (),
        "table": build_table(
            export_measured(matrix) if matrix else export_matrix(matrix_query),
            excluded_column="" if query.ids else "runs",
        ),
    }


@router.get(
    "/compare",
    response=ComparisonDocument | SidesDocument,
    auth=READ,
    openapi_extra={"parameters": build_compare_parameters()},
)
def compare_sides(request: HttpRequest) -> Any:
    """Compare sides, such as a_run=1&b_run=2.

    A filter with a prefix a_, b_, c_ … l_ applies to one side; without a prefix, it applies to all sides. The first
    side is the baseline. The answer for three sides or more is a SidesDocument.
    """
    if unknown_names := sorted(set(request.GET) - set(PARAMETER_NAMES)):
        names_text = ", ".join(unknown_names)[:200]
        message = f"Remove {names_text}: there is no such parameter."
        return build_field_problem([FieldProblem(field=names_text, message=message)])
    query = CompareQuery.from_query(request.GET)
    if problem := find_unreadable_problem(query.ignored):
        return problem
    if not query.is_complete or query.is_published:
        return build_field_problem(
            [FieldProblem(field="a_run", message="Name two different sides of measured trials.")]
        )
    page = get_sides_page(query)
    if (pair := page.pair) is None:
        return _build_sides(page.comparison)
    comparison = pair.comparison
    names = ("names", "comparable", "shared_trials", "metric", "how", "noise", "warnings")
    return {name: getattr(comparison, name) for name in names} | {
        "points": comparison.required_trials.points,
        "needed_trials": comparison.required_trials.trials,
        "more_trials": comparison.required_trials.more,
        "changed": [_build_changed_instance(instance) for instance in pair.changed_instances],
        "table": build_table(export_pair(comparison)),
    }


def _build_changed_instance(changed: ChangedInstance) -> dict[str, Any]:
    names = ("scenario", "instance", "first", "second")
    return {name: getattr(changed, name) for name in names} | {"fate": changed.change}


def _build_sides(comparison: BaselineComparison) -> dict[str, Any]:
    return {
        "baseline": comparison.baseline.name,
        "names": comparison.names,
        "metric": SUCCESS_METRICS[comparison.query.metric],
        "comparisons": comparison.comparisons,
        "points": comparison.required_trials.points,
        "needed_trials": comparison.required_trials.trials,
        "more_trials": comparison.required_trials.more,
        "warnings": comparison.warnings,
        "table": build_table(export_baseline(comparison)),
    }


@router.get("/failures", response=FailuresDocument, auth=READ)
def list_failures(request: HttpRequest, query: Query[FailuresParameters]) -> Any:
    """Return failures by cause, and the largest failure groups."""
    failures_query = replace(FailuresQuery.from_query(request.GET), by="scenario")
    if problem := find_unreadable_problem(failures_query.ignored):
        return problem
    page = get_failures(failures_query)
    names = ("signature", "scenario", "version", "place", "count", "sentence", "exemplar", "nearest")
    return {
        "version": page.version,
        "causes": [{"cause": row.cause.code, "count": row.count, "trials": row.query} for row in page.heat_map.rows],
        "groups": [
            {name: getattr(group, name) for name in names}
            | {"runs": group.run_count, "cause": group.cause.code if group.cause else "", "trials": group.query}
            for group in page.groups.shown
        ],
    }


@router.get("/runs/{int:run_id}/latency", response=LatencyDocument, auth=READ)
def get_run_latency(request: HttpRequest, run_id: int, query: Query[LatencyParameters]) -> dict[str, Any]:
    """Return the times of the answered trials of a run by configuration."""
    get_run_or_404(run_id)
    page = get_latency(LatencyQuery(runs=(run_id,), metric=query.metric, group=query.group), all_rows=True)
    rows = [_build_latency_row(row) for row in page.rows]
    return {"run": run_id, "metric": query.metric, "group": page.group, "groups": page.groups, "rows": rows}


def _build_latency_row(row: LatencyRow) -> dict[str, Any]:
    names = ("config_id", "label", "provider", "local")
    quantiles = {name: getattr(row.summary, name) for name in ("n", "p50", "p95", "p99")}
    return {name: getattr(row, name) for name in names} | quantiles | {"saturated": row.counts.saturated}


@router.post("/what-if", response=WhatIfDocument, auth=READ)
def replay_trials(request: HttpRequest, body: WhatIfBody) -> Any:
    """Replay stored trials with other settings, without sending a request. A worker replays more than 100 trials."""
    scopes = {kind: getattr(body, kind) for kind in SCOPE_KINDS if getattr(body, kind) is not None}
    if len(scopes) != 1:
        return build_field_problem([FieldProblem(field="trial", message="Name exactly one of trial, cell and run.")])
    ((kind, scope_id),) = scopes.items()
    settings = WhatIfSettings.from_query(_list_settings(body))
    if settings.ignored:
        return build_field_problem([_build_unknown_value_problem(text) for text in settings.ignored])
    try:
        return _build_what_if(get_what_if_page(ReplayScope(kind, scope_id), settings, with_ablation=body.ablate))
    except NothingToReplayError as error:
        raise ProblemError(404, str(error)) from error


@router.post("/runs/{int:run_id}/rejudge", response=RejudgingDocument, auth=LAUNCH)
def rejudge_run(request: HttpRequest, run_id: int) -> dict[str, Any]:
    """Re-judge the trials of a run by the current scenarios and rules. A worker re-judges more than 200 trials."""
    run = get_run_or_404(run_id)
    result = request_rejudging(run)
    record(request, Action.CHANGED, f"run {run_id}: re-judged", f"/runs/{run_id}/judgements/")
    return _build_rejudging(run, result.sentence if result else "A worker re-judges this run.")


@router.get("/runs/{int:run_id}/judgements", response=RejudgingDocument, auth=READ)
def list_judgements(request: HttpRequest, run_id: int) -> dict[str, Any]:
    """Return the trials whose outcome changed when they were re-judged."""
    return _build_rejudging(get_run_or_404(run_id), "")


def _build_rejudging(run: Run, sentence: str) -> dict[str, Any]:
    """Return the values of a RejudgingDocument."""
    changes = [
        {"trial": after.trial_id, "before": before.outcome, "after": after.outcome, "judged_at": after.judged_at}
        for before, after in get_changes(run)
    ]
    return {"waiting": find_rejudging(run) is not None, "sentence": sentence, "changes": changes}


def _list_settings(body: WhatIfBody) -> dict[str, list[str]]:
    """Return the settings of a body as URL parameters of the page What-if: a list of values by parameter."""
    limits = {name: getattr(body, name) for name in LIMIT_KEYS}
    pairs = [("strategy", body.strategy), ("format", body.text_format)]
    pairs += [("preset", name) for name in body.presets] + [("without", name) for name in body.without]
    pairs += [(name, str(limit)) for name, limit in limits.items() if limit is not None]
    return dict(QueryDict(urlencode([(name, value) for name, value in pairs if value])).lists())


def _build_unknown_value_problem(text: str) -> FieldProblem:
    """Return the problem of an unknown value of a what-if.

    Args:
        text: an item of `WhatIfSettings.ignored`: the URL parameter, a space and the value.
    """
    parameter, _, value = text.partition(" ")
    field = _WHAT_IF_MEMBERS.get(parameter, parameter)
    return FieldProblem(field=field, message=f"Change {field}: there is no {value}.")


def _build_what_if(page: WhatIfPage) -> dict[str, Any]:
    """Return the values of a WhatIfDocument."""
    totals = page.totals
    return {
        "trials": page.trials,
        "waiting": page.waiting is not None,
        "refused": page.refused,
        "sentence": totals.sentence if totals else page.hint,
        "before": totals.before if totals else None,
        "after_least": totals.after.lowest if totals else None,
        "after_most": totals.after.highest if totals else None,
        "changes": [change for change, _ in page.changes],
        "ablations": [
            {
                "name": ablation.name,
                "sentence": ablation.totals.sentence,
                "changed": [change.trial for change in ablation.changed],
                "unsure": ablation.unsure,
            }
            for ablation in page.ablations
        ],
    }
