"""Trial page: one trial with its steps or its conversation.

The number of queries does not depend on the number of steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, OuterRef
from django.db.models.functions import JSONObject

from toolbench.engine.events import ANSWERED_ENDS
from toolbench.evals.judging import failure_classes
from toolbench.evals.judging.case_study_rule import DONE_CHECK
from toolbench.evals.scenarios.state import StateScenario
from toolbench.evals.types import Check
from toolbench.evals.user_cases.options import BEHAVIOUR_LABELS
from toolbench.evals.user_cases.scenario import UserCaseScenario, is_user_case_group
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Cell, Judgement, Run, RunConfig, Step, Trial
from toolbench.lab.planning.tool_support import describe_support
from toolbench.lab.replays.rejudge import get_judgements
from toolbench.lab.results.trial.bodies.partial_bodies import (
    MAX_BODY_BYTES,
    StoredBodies,
    read_step_bodies,
    select_facts,
)
from toolbench.lab.results.trial.conversation.turns import TrialConversation, build_conversation
from toolbench.lab.results.trial.human_verdicts import (
    HumanVerdictRow,
    build_verdicts_expression,
    can_be_judged,
    parse_verdict_rows,
)
from toolbench.lab.results.trial.page_query import CONVERSATION, STEPS
from toolbench.lab.results.trial.previous_next import Neighbours, get_neighbours
from toolbench.lab.results.trial.repeats import RepeatGroup, TrialRepeat, get_repeats
from toolbench.lab.results.trial.step_details import StepView, build_step_view
from toolbench.lab.results.trial.timeline import (
    StepFacts,
    TimelineRow,
    TimelineTurn,
    build_timeline,
    find_first_bad_key,
    find_open_row,
)
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import choose_mark
from toolbench.lab.scenarios.catalogue import load_judging_scenario
from toolbench.lab.traces.omitted_parameters import OmissionNote, parse_omitted_parameters
from toolbench.lab.traces.removed_bodies import explain_removed_bodies

MAX_STEPS = 400
TOOLS_DROPPED = "tools_dropped"


@dataclass(frozen=True, slots=True)
class EarlierExecution:
    """Earlier execution of the trial: it was lost, or the trial was requeued after it.

    Attributes:
        steps: number of its stored steps.
    """

    execution: int
    steps: int


@dataclass(frozen=True, slots=True)
class TrialPage:
    """Content of the trial page.

    Attributes:
        filter: filter of the trial list that led to the page.
        mark: outcome; `running` or `queued` until the trial has ended.
        headline: result in one sentence.
        class_sentence: description of the failure class; empty without a failure class.
        suggested_fix: suggested fix of the failure class; empty without a failure class.
        rule: rule that the judge applied; empty without a verdict.
        behaviour: the behaviour that the scenario tests, in words; empty if it tests none or is unknown here.
        first_bad_key: key of the timeline row with the first problem; empty if it is unknown.
        rendered_prompt: prompt as the server rendered it, or as sent with the method template; empty if unknown.
        steps_truncated: whether the current execution has more than MAX_STEPS steps.
        step: the open step; None without steps, and in views other than STEPS.
        conversation: messages of the conversation; None in views other than CONVERSATION.
        earlier: earlier executions, the oldest first.
        repeats: the first MAX_REPEATS trials of the cell; they may lack the trial of the page.
        distinct: number of distinct answers of those `repeats` that have ended.
        answered: answered success of the cell.
        delivered: end-to-end success of the cell.
        judgements: verdicts before and after each re-judging, the oldest first; () if the trial was never re-judged.
        human_verdicts: human verdicts, the newest first.
        support: sentence about the model's tool support, as it was known before the first request.
        omitted_parameters: parameters that the trial's requests left out, since the endpoint refused them.
    """

    trial: Trial
    run: Run
    config: RunConfig
    cell: Cell
    filter: TrialFilter
    neighbours: Neighbours
    mark: str
    headline: str
    class_sentence: str
    suggested_fix: str
    rule: str
    behaviour: str
    checks: tuple[Check, ...]
    first_bad_key: str
    final_text: str
    rendered_prompt: str
    timeline: tuple[TimelineTurn, ...]
    steps_truncated: bool
    step: StepView | None
    conversation: TrialConversation | None
    earlier: tuple[EarlierExecution, ...]
    repeats: tuple[TrialRepeat, ...]
    repeat_groups: tuple[RepeatGroup, ...]
    distinct: int
    answered: Rate
    delivered: Rate
    judgements: tuple[Judgement, ...]
    human_verdicts: tuple[HumanVerdictRow, ...]
    support: str
    omitted_parameters: tuple[OmissionNote, ...]

    @property
    def other_model_echoed(self) -> str:
        """Return the models that the answers name; "" if the answers name none or only the requested one."""
        return "" if self.trial.model_echoed == self.config.model_name else self.trial.model_echoed

    @property
    def repeat_count(self) -> int:
        """Return the number of trials of the cell."""
        return max(tally_cells([self.cell]).trial_count, len(self.repeats))  # the counts of the cell may be outdated

    @property
    def methods_used(self) -> str:
        """Return the methods that the turns used, separated by commas; "" if no turn used one."""
        return ", ".join(filter(None, self.trial.paths.split(",")))

    @property
    def is_failed_by_end(self) -> bool:
        """Return whether the trial failed although every check holds: it ended without an answer."""
        has_no_answer = self.trial.end not in ("", *ANSWERED_ENDS)
        return self.trial.outcome == "fail" and has_no_answer and all(check.ok for check in self.checks)

    @property
    def case_study_only(self) -> tuple[Check, ...]:
        """Return the checks that count for the case study's rule, but not for the verdict.

        They are the check DONE_CHECK, except in controls, and the failed checks of a trial that passed.
        """
        has_passed, is_control = self.trial.outcome == Trial.Outcome.PASS, self.cell.control
        return tuple(
            check
            for check in self.checks
            if (check.name == DONE_CHECK and not is_control) or (has_passed and not check.ok)
        )

    @property
    def is_user_case(self) -> bool:
        """Return whether the scenario is a test case, which has a page of its own."""
        return is_user_case_group(self.cell.scenario_group)

    @property
    def can_be_judged(self) -> bool:
        """Return whether users may judge the trial: it passed or failed."""
        return can_be_judged(self.trial)

    @property
    def can_be_compared(self) -> bool:
        """Return whether the trial can be compared with another one: it has ended, and its bodies are stored."""
        return self.trial.state == Trial.State.DONE and bool(self.timeline) and not self.bodies_note

    @property
    def can_be_replayed(self) -> bool:
        """Return whether the trial can be replayed: it has ended, and bodies of Toolbench's requests are stored."""
        has_requests = self.trial.state == Trial.State.DONE and self.trial.requests > 0
        return has_requests and not self.bodies_note and self.run.origin.get("kind") != "inspect"

    @property
    def bodies_note(self) -> str:
        """Return when and by which rule the bodies were removed; "" if they were not."""
        return explain_removed_bodies(self.trial)

    @property
    def judged_version(self) -> int:
        """Return the scenario version of the current verdict."""
        return _find_judged_version(self.trial, self.judgements)


@dataclass(frozen=True, slots=True)
class _TrialSteps:
    """Steps of a trial, with their bodies and the timeline.

    Attributes:
        steps: the first MAX_STEPS steps of the current execution.
        is_truncated: whether there are more steps.
        stored: step details and bodies by step id, as far as they were read.
        facts: step details by step id.
        first_bad_key: key of the row with the first problem; empty if it is unknown.
        open_row: the row that the page opens; None if the timeline has no row to open.
    """

    steps: Sequence[Step]
    is_truncated: bool
    stored: Mapping[int, StoredBodies]
    facts: StepFacts
    timeline: tuple[TimelineTurn, ...]
    first_bad_key: str
    open_row: TimelineRow | None


def get_trial_page(trial_id: int, trial_filter: TrialFilter, key: str = "", *, view: str = STEPS) -> TrialPage:
    """Return the trial page.

    Args:
        trial_id: primary key of the trial.
        trial_filter: filter of the trial list that led to the page; an empty filter stands for all trials of the run.
        key: key `<ordinal>.<part>` of the row to open; any other text opens the first bad row, else the first response.
        view: one of VIEWS. The open step is built only for STEPS, the conversation only for CONVERSATION.

    Raises:
        Trial.DoesNotExist: the trial does not exist, or its run was deleted.
    """
    trial, earlier, human_verdicts = _get_trial(trial_id)
    steps = _read_steps(trial, key)
    repeats, counts = get_repeats(trial), tally_cells([trial.cell])
    failure_class = _find_failure_class(trial)
    judgements = get_judgements(trial)
    version = _find_judged_version(trial, judgements)
    return TrialPage(
        trial=trial,
        run=trial.run,
        config=trial.config,
        cell=trial.cell,
        filter=trial_filter,
        neighbours=get_neighbours(trial, TrialFilter(run=trial.run_id) if trial_filter.is_empty else trial_filter),
        mark=choose_mark(trial),
        headline=_build_headline(trial, failure_class),
        class_sentence=failure_class.sentence if failure_class else "",
        suggested_fix=failure_class.remedy if failure_class else "",
        rule=trial.verdict.get("rule", ""),
        behaviour=_describe_behaviour(trial, version),
        checks=tuple(Check(**check) for check in trial.verdict.get("checks", ())),
        first_bad_key=steps.first_bad_key,
        final_text=_decode_text(trial.final_text),
        rendered_prompt=_decode_text(trial.rendered_prompt),
        timeline=steps.timeline,
        steps_truncated=steps.is_truncated,
        step=_build_step_view(steps) if view == STEPS else None,
        conversation=build_conversation(trial, version, steps.steps, steps.stored) if view == CONVERSATION else None,
        earlier=earlier,
        repeats=repeats.all_repeats,
        repeat_groups=repeats.repeat_groups,
        distinct=repeats.distinct,
        answered=counts.compute_answered_success(),
        delivered=counts.compute_end_to_end_success(),
        judgements=judgements,
        human_verdicts=human_verdicts,
        support=describe_support(trial.config.support),
        omitted_parameters=parse_omitted_parameters(trial.left_out),
    )


def _describe_behaviour(trial: Trial, version: int) -> str:
    """Return the behaviour that the scenario tests, in words, with at most one query; "" if there is none."""
    if trial.behaviour_seen is None:
        return ""
    try:
        scenario = load_judging_scenario(trial.scenario, version)
    except KeyError:  # a deleted test case, or a scenario of an imported run that is not installed here
        return ""
    if isinstance(scenario, UserCaseScenario):
        return BEHAVIOUR_LABELS.get(scenario.case.behaviour, "")
    return BEHAVIOUR_LABELS.get(scenario.behaviour, "") if isinstance(scenario, StateScenario) else ""


def _find_judged_version(trial: Trial, judgements: Sequence[Judgement]) -> int:
    current = (judgement.scenario_version for judgement in judgements if judgement.current)
    return next(current, trial.scenario_version)


def _find_failure_class(trial: Trial) -> failure_classes.FailureClass | None:
    """Return the trial's failure class; None without one.

    If the server dropped the tools of a failed trial, the class TOOLS_DROPPED takes precedence over the stored one.
    """
    is_dropped = trial.tools_dropped and trial.outcome == Trial.Outcome.FAIL
    code = TOOLS_DROPPED if is_dropped else trial.failure_class
    return next((failure_class for failure_class in failure_classes.load_classes() if failure_class.code == code), None)


def _build_headline(trial: Trial, failure_class: failure_classes.FailureClass | None) -> str:
    if failure_class and failure_class.code == TOOLS_DROPPED:
        return failure_class.sentence
    if trial.sentence:
        return trial.sentence
    sentences = {
        "pass": "Every check passed.",
        "na": "The trial is not applicable: it neither passed nor failed.",
        "cancelled": "The trial was cancelled before a verdict.",
        "queued": "The trial waits for a worker.",
        "running": "The trial is running.",
    }
    return sentences.get(choose_mark(trial), "The trial has no verdict.")


def _decode_text(stored: bytes | memoryview | None) -> str:
    """Return stored bytes as text: the first MAX_BODY_BYTES, with a note if there are more."""
    whole = bytes(stored or b"")
    text = whole[:MAX_BODY_BYTES].decode("utf-8", "backslashreplace").replace("\0", "␀")
    return text if len(whole) <= MAX_BODY_BYTES else f"{text}\n… Only the beginning is shown."


def _find_turn(steps: Sequence[Step], trial: Trial, key: str) -> int | None:
    """Return the turn of the step that the URL or the verdict names; None if neither names a step."""
    ordinal = key.partition(".")[0]
    turns = {str(step.ordinal): step.turn for step in steps}
    return turns.get(ordinal, turns.get(str(trial.first_bad_ordinal)))


def _list_possible_step_ids(steps: Sequence[Step], trial: Trial, key: str) -> list[int]:
    """Return the ids of the steps that the page may open.

    They are the step in the URL, the step with the first problem and the first exchange, as far as they exist.
    """
    ordinals = (key.partition(".")[0], str(trial.first_bad_ordinal))
    first_exchange = next((step.pk for step in steps if step.kind == Step.Kind.EXCHANGE), None)
    named_steps = [step.pk for step in steps if str(step.ordinal) in ordinals]
    return named_steps if first_exchange is None else [*named_steps, first_exchange]


def _build_step_view(trial_steps: _TrialSteps) -> StepView | None:
    if trial_steps.open_row is None:
        return None
    ordinal = int(trial_steps.open_row.key.split(".")[0])
    step = next(step for step in trial_steps.steps if step.ordinal == ordinal)
    tool_facts = [
        trial_steps.facts.get(tool_step.pk, {})
        for tool_step in trial_steps.steps
        if tool_step.turn == step.turn and tool_step.kind == Step.Kind.TOOL
    ]
    bodies = trial_steps.stored.get(step.pk, StoredBodies())
    return build_step_view(
        step,
        trial_steps.open_row.part,
        facts=bodies.facts or {},
        tool_facts=tool_facts,
        bodies=(bodies.request, bodies.response),
    )


def _get_trial(trial_id: int) -> tuple[Trial, tuple[EarlierExecution, ...], tuple[HumanVerdictRow, ...]]:
    """Return the trial, its earlier executions and its human verdicts, with one query.

    The trial comes with its run, cell and configuration, and with the model and its provider.

    Raises:
        Trial.DoesNotExist: the trial does not exist, or its run was deleted.
    """
    earlier = Step.objects.filter(trial=OuterRef("pk"), execution__lt=OuterRef("execution")).order_by("execution")
    counted = earlier.values("execution").annotate(steps=Count("pk"))
    rows = ArraySubquery(counted.values_list(JSONObject(execution="execution", steps="steps")))
    trials = Trial.objects.select_related("run", "config__model__provider", "cell").annotate(earlier_rows=rows)
    trial = trials.annotate(human_rows=build_verdicts_expression()).get(pk=trial_id, run__deleted_at=None)
    earlier_executions = tuple(EarlierExecution(**row) for row in trial.earlier_rows)
    return trial, earlier_executions, parse_verdict_rows(trial.human_rows, trial)


def _read_steps(trial: Trial, key: str) -> _TrialSteps:
    steps = list(Step.objects.filter(trial=trial, execution=trial.execution).order_by("ordinal")[: MAX_STEPS + 1])
    current = steps[:MAX_STEPS]
    step_ids = _list_possible_step_ids(current, trial, key)
    stored = read_step_bodies(current, turn=_find_turn(current, trial, key), requests=step_ids, responses=step_ids)
    facts = select_facts(stored)
    timeline = build_timeline(current, facts)
    first_bad_key = find_first_bad_key(trial, timeline)
    open_row = find_open_row(timeline, key, first_bad_key)
    return _TrialSteps(current, len(steps) > MAX_STEPS, stored, facts, timeline, first_bad_key, open_row)
