"""Operations on decisions: rules, missing trials, records and their confirmation, exported settings."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, QueryDict
from ninja import Query, Router, Status
from pydantic import Field

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import AgreedBody, BodySchema, Id, SentenceDocument
from toolbench.api.documents.results import ChosenQuery
from toolbench.api.documents.runs import RunDocument
from toolbench.api.documents.trials import Text
from toolbench.api.problems import ProblemError, find_unreadable_problem, list_excluded_names
from toolbench.engine.types import JsonObject
from toolbench.lab.accounts.audit import Action
from toolbench.lab.models import DecisionRecord, Run
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, LaunchError
from toolbench.lab.query_params import describe_unreadable
from toolbench.lab.results.decide.confirmation_run import launch_confirmation, save_confirmation
from toolbench.lab.results.decide.more_trials import get_missing_trials_plan, launch_missing_trials
from toolbench.lab.results.decide.new_trials import NewTrialsError
from toolbench.lab.results.decide.page import DecidePage, get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import (
    MAX_NOTE_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    find_record,
    get_records,
    list_record_changes,
    record_to_json,
    row_to_json,
    save_record,
)
from toolbench.lab.results.decide.settings_export import get_settings_page

router = Router()
# Members of a row of GET /decide that only `ids=true` adds.
_ID_LISTS = ("config_ids", "run_ids", "cell_ids")
Percent = Annotated[float, Field(ge=1, le=99.9)]
Seconds = Annotated[float, Field(ge=0.001, le=86_400)]


class DecideParameters(ChosenQuery):
    """Scope and rule of a decision.

    Attributes:
        scope: `real` for measured runs of this installation (not simulated, not imported), `runs` for those in `run`,
            `demo` for simulated runs. If it is missing: `runs` if `run` names runs, otherwise `real`.
        want: goal: `cheapest`, `fastest` or `reliable`. If it is missing: `cheapest` if any model costs money, else
            `reliable`.
        success: end-to-end success required, in percent.
        within: largest p95 permitted, in seconds; `none` for no limit.
        q: part of the name of the model or provider, in upper or lower case; "" for all.
        group: name of a group of scenarios; "" for the default group.
        ids: whether each row has the ids of its configurations, runs and cells, which may be thousands.
    """

    scope: Literal["real", "runs", "demo"] | None = None
    want: Text = ""
    success: Percent = 90
    within: Seconds | Literal["none"] = 20
    q: Text = ""
    group: Text = ""
    ids: bool = False


class RuleBody(BodySchema):
    """Scope and rule of a decision. GET /decide describes the members.

    Attributes:
        run: ids of runs.
        within: largest p95 permitted, in seconds; null for no limit.
    """

    scope: Literal["real", "runs", "demo"] | None = None
    run: Annotated[list[Id], Field(max_length=50)] = []
    want: Text = ""
    success: Percent = 90.0
    within: Seconds | None = 20.0
    q: Text = ""
    group: Text = ""


class MissingTrialsDocument(Schema):
    """Plan of the additional trials with which the rule could reach a decision.

    Attributes:
        labels: names of the configurations.
        trials: number of trials of each scenario, for each configuration.
        scenarios: slugs of the scenarios.
        total: number of trials over all configurations and scenarios.
        refusal: reason why the trials cannot be launched; "" if they can.
        shown: hash of the plan; POST /decide/trials requires it, so that no other plan is launched.
    """

    labels: list[str]
    trials: int
    scenarios: list[str]
    total: int
    refusal: str
    shown: str


class DecisionDocument(Schema):
    """The result of a rule.

    Attributes:
        verdict: `none`: no configuration meets the rule; `alone`: only the leader qualifies; `clear`: several qualify,
            and the leader's interval of the figure that the goal is about overlaps with none of theirs; `unclear`: it
            overlaps with one or more; `confirm`: the leader meets the rule, but needs a confirmation run to qualify.
        goal: the goal in words.
        leader: `key` of the chosen row; null if the verdict is `none`.
        chosen_among: number of configurations that were compared.
        rows: the configurations with their figures and reasons, the best first.
        missing: plan of the missing trials; null if none would help, none are needed, or trials of these configurations
            are pending.
    """

    verdict: str
    sentence: str
    goal: str
    leader: str | None
    chosen_among: int
    rows: list[JsonObject]
    missing: MissingTrialsDocument | None


class MissingTrialsBody(AgreedBody):
    """The rule, and the hash of the plan of missing trials that GET /decide returned."""

    rule: RuleBody
    shown: Text


class RecordBody(BodySchema):
    """Decision to save as a record. Later trials do not change the figures of the record.

    Attributes:
        title: title of the record; "" for one that names the rule and the leader.
    """

    rule: RuleBody
    title: Annotated[str, Field(max_length=MAX_TITLE_CHARACTERS)] = ""
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARACTERS)] = ""


class RecordDocument(Schema):
    """Decision record without its evidence; `who` is the name of the user who saved it."""

    id: int
    title: str
    verdict: str
    sentence: str
    who: str
    simulated: bool
    created_at: datetime


class RecordChangeDocument(Schema):
    """Difference between a record and the result of the same rule now.

    Attributes:
        label: name of the configuration, or "The answer" for the sentence of the decision.
        then: text of the record; "not there" for a configuration that the record lacks.
        now: text of the result now; "not there" for a configuration that the result lacks.
    """

    label: str
    then: str
    now: str


class ConfirmBody(AgreedBody):
    """Number of new trials of each scenario with the configuration that a record chose."""

    trials: Annotated[int, Field(ge=1, le=MAX_CELL_TRIALS)]


class SettingsFileDocument(Schema):
    """File with the settings of a configuration for another program. It contains no API key.

    Attributes:
        file: name of the file.
        title: title of its format.
        text: content of the file.
    """

    file: str
    title: str
    text: str


@router.get("/decide", response=DecisionDocument, auth=READ)
def decide(request: HttpRequest, query: Query[DecideParameters]) -> Any:
    """Apply a rule to measured configurations."""
    decide_query = DecideQuery.from_query(request.GET)
    if problem := find_unreadable_problem((*decide_query.ignored, *list_excluded_names(request.GET))):
        return problem
    return _build_decision(get_decide_page(decide_query), excluded_names=() if query.ids else _ID_LISTS)


@router.post("/decide/trials", response={201: RunDocument}, auth=LAUNCH)
def launch_missing(request: HttpRequest, body: MissingTrialsBody) -> Status[Run]:
    """Launch the missing trials of a decision."""
    query = _read_rule(body.rule)
    try:
        run = launch_missing_trials(query, owner=get_user(request), shown=body.shown, confirmed_requests=body.agreed)
    except (NewTrialsError, LaunchError) as error:
        raise ProblemError(409, f"No trials were launched. {error}") from error
    record(request, Action.LAUNCHED, f"run {run.pk}", f"/runs/{run.pk}/")
    return Status(201, run)


@router.get("/decide/records", response=list[RecordDocument], auth=READ)
def list_records(request: HttpRequest) -> tuple[DecisionRecord, ...]:
    """List the newest 200 decision records, newest first."""
    return get_records()


@router.post("/decide/records", response={201: RecordDocument}, auth=LAUNCH)
def save_decision(request: HttpRequest, body: RecordBody) -> Status[DecisionRecord]:
    """Save a decision as a record."""
    saved = save_record(_read_rule(body.rule), owner=get_user(request), title=body.title, note=body.note)
    record(request, Action.ADDED, f"decision record {saved.pk}", f"/decide/records/{saved.pk}/")
    return Status(201, saved)


@router.get("/decide/records/{int:record_id}", response=JsonObject, auth=READ)
def get_decision_record(request: HttpRequest, record_id: int) -> JsonObject:
    """Return a record with its evidence."""
    return record_to_json(_get_record_or_404(record_id))


@router.get("/decide/records/{int:record_id}/changes", response=list[RecordChangeDocument], auth=READ)
def list_changes(request: HttpRequest, record_id: int) -> Any:
    """Return the differences between a record and the result of the same rule now."""
    return list_record_changes(_get_record_or_404(record_id))


@router.post("/decide/records/{int:record_id}/confirmation", response={201: RunDocument}, auth=LAUNCH)
def confirm_record(request: HttpRequest, record_id: int, body: ConfirmBody) -> Status[Run]:
    """Launch new trials of the configuration that a record chose. Only their result confirms the decision."""
    decision_record = _get_record_or_404(record_id)
    try:
        run = launch_confirmation(
            decision_record, owner=get_user(request), trials=body.trials, confirmed_requests=body.agreed
        )
    except (NewTrialsError, LaunchError) as error:
        raise ProblemError(409, str(error)) from error
    record(request, Action.LAUNCHED, f"run {run.pk}", f"/runs/{run.pk}/")
    return Status(201, run)


@router.post("/decide/records/{int:record_id}/confirmed", response=SentenceDocument, auth=LAUNCH)
def keep_confirmation(request: HttpRequest, record_id: int) -> dict[str, str]:
    """Save the result of a finished confirmation in its record."""
    decision_record = _get_record_or_404(record_id)
    try:
        save_confirmation(decision_record)
    except NewTrialsError as error:
        raise ProblemError(409, str(error)) from error
    record(
        request,
        Action.CHANGED,
        f"decision record {decision_record.pk}: confirmed",
        f"/decide/records/{decision_record.pk}/",
    )
    return {"sentence": "The confirmation result is saved in this record."}


@router.get("/configs/{int:config_id}/settings", response=list[SettingsFileDocument], auth=READ)
def export_settings(request: HttpRequest, config_id: int) -> Any:
    """Return the settings of a configuration as files for other programs."""
    page = get_settings_page(config_id)
    if page is None:
        raise Http404(f"There is no configuration {config_id}; its run may have been deleted.")
    if page.problem:
        raise ProblemError(409, page.problem)
    return page.files


def _read_rule(rule: RuleBody) -> DecideQuery:
    """Return the query of a rule.

    Raises:
        ProblemError: a value of the rule cannot be read, or excludes another value.
    """
    pairs: list[tuple[str, str]] = [(name, getattr(rule, name) or "") for name in ("scope", "want", "q", "group")]
    pairs += [("success", f"{rule.success:.15g}"), ("within", "none" if rule.within is None else f"{rule.within:.15g}")]
    pairs += [("run", str(run)) for run in rule.run]
    params = QueryDict(urlencode(pairs))
    query = DecideQuery.from_query(params)
    if unreadable_names := (*query.ignored, *list_excluded_names(params)):
        raise ProblemError(422, describe_unreadable(unreadable_names))
    return query


def _get_record_or_404(record_id: int) -> DecisionRecord:
    decision_record = find_record(record_id)
    if decision_record is None:
        raise Http404(f"There is no decision record {record_id}.")
    return decision_record


def _build_decision(page: DecidePage, *, excluded_names: Collection[str]) -> dict[str, Any]:
    """Return the values of a DecisionDocument, whose rows do not have the members `excluded_names`."""
    decision, rows = page.decision, map(row_to_json, page.rows)
    return {
        "verdict": decision.verdict,
        "sentence": decision.sentence,
        "goal": decision.rule.goal,
        "leader": decision.leader.measured.key if decision.leader else None,
        "chosen_among": decision.chosen_among,
        "rows": [{name: value for name, value in row.items() if name not in excluded_names} for row in rows],
        "missing": get_missing_trials_plan(page),
    }
