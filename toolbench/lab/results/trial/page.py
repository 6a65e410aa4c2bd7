"""One trial step by step, as the trial page shows it. A fixed number of queries, bodies of the chosen step only."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from toolbench.evals.judging import failure_classes
from toolbench.evals.types import Check
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import tally
from toolbench.lab.models import Cell, Judgement, Run, RunConfig, Step, Trial
from toolbench.lab.planning.tool_support import support_sentence
from toolbench.lab.replays.rejudge import get_judgements
from toolbench.lab.results.trial.filter import TrialFilter
from toolbench.lab.results.trial.index import mark
from toolbench.lab.results.trial.partial_bodies import BODY_HEAD, read_bodies, read_facts
from toolbench.lab.results.trial.previous_next import Neighbours, get_neighbours
from toolbench.lab.results.trial.repeats import Repeat, RepeatFold, get_repeats
from toolbench.lab.results.trial.step_details import StepView, view_step
from toolbench.lab.results.trial.timeline import Facts, RailStep, RailTurn, build_rail, chosen_line, first_bad_key
from toolbench.lab.traces.omitted_parameters import LeftOutLine, read_left_out

MOST_STEPS = 400
DROPPED = "tools_dropped"


@dataclass(frozen=True, slots=True)
class EarlierExecution:
    """One whose worker was lost, that was given back, or that was tried again. Its steps are kept."""

    execution: int
    steps: int


@dataclass(frozen=True, slots=True)
class Trace:
    trial: Trial
    run: Run
    config: RunConfig
    cell: Cell
    filter: TrialFilter
    neighbours: Neighbours
    mark: str
    headline: str
    class_sentence: str
    remedy: str
    rule: str
    checks: tuple[Check, ...]
    first_bad_key: str
    final_text: str
    rendered_prompt: str
    rail: tuple[RailTurn, ...]
    steps_cut: bool
    step: StepView | None
    earlier: tuple[EarlierExecution, ...]
    repeats: tuple[Repeat, ...]
    folds: tuple[RepeatFold, ...]
    distinct: int  # answers of all repeats
    answered: Rate
    delivered: Rate
    judgements: tuple[Judgement, ...]
    support: str  # who said, before the first request, whether the model calls tools
    left_out: tuple[LeftOutLine, ...]

    @property
    def judged_version(self) -> int:
        """Of the scenario, by the verdict that counts."""
        return next((one.scenario_version for one in self.judgements if one.current), self.trial.scenario_version)


def get_trace(trial_id: int, filter: TrialFilter, key: str = "") -> Trace:
    """`key` names the chosen step, `<ordinal>.<part>`; unknown or empty chooses the first bad one, else the first
    answer. Raises Trial.DoesNotExist for an unknown trial or one of a deleted run."""
    trial = Trial.objects.select_related("run", "config", "cell").get(pk=trial_id, run__deleted_at=None)
    steps = list(Step.objects.filter(trial=trial, execution=trial.execution).order_by("ordinal")[: MOST_STEPS + 1])
    current = steps[:MOST_STEPS]
    facts = read_facts(current, _wanted_turn(current, trial, key))
    rail = build_rail(current, facts)
    first_bad = first_bad_key(trial, rail)
    chosen = chosen_line(rail, key, first_bad)
    repeats = get_repeats(trial)
    counts = tally([trial.cell])
    row = _class(trial)
    return Trace(
        trial=trial,
        run=trial.run,
        config=trial.config,
        cell=trial.cell,
        filter=filter,
        neighbours=get_neighbours(trial, filter),
        mark=mark(trial),
        headline=_headline(trial, row),
        class_sentence=row.sentence if row else "",
        remedy=row.remedy if row else "",
        rule=trial.verdict.get("rule", ""),
        checks=tuple(Check(**check) for check in trial.verdict.get("checks", ())),
        first_bad_key=first_bad,
        final_text=_text(trial.final_text),
        rendered_prompt=_text(trial.rendered_prompt),
        rail=rail,
        steps_cut=len(steps) > MOST_STEPS,
        step=_view(chosen, current, facts),
        earlier=_earlier(trial),
        repeats=repeats.every,
        folds=repeats.folds,
        distinct=repeats.distinct,
        answered=counts.given_an_answer(),
        delivered=counts.delivered(),
        judgements=get_judgements(trial),
        support=support_sentence(trial.config.support),
        left_out=read_left_out(trial.left_out),
    )


def _class(trial: Trial) -> failure_classes.FailureClass | None:
    """Dropped tools are the first cause, whatever a judge who did not know of them wrote down."""
    dropped = trial.tools_dropped and trial.outcome == Trial.Outcome.FAIL
    code = DROPPED if dropped else trial.failure_class
    return next((one for one in failure_classes.all_classes() if one.code == code), None)


def _headline(trial: Trial, row: failure_classes.FailureClass | None) -> str:
    if row and row.code == DROPPED:
        return row.sentence
    if trial.sentence:
        return trial.sentence
    words = {
        "pass": "Every check passed.",
        "na": "Not applicable: neither pass nor fail.",
        "cancelled": "Cancelled before it could be judged.",
        "queued": "Waiting for a worker.",
        "running": "Running now.",
    }
    return words.get(mark(trial), "No verdict.")


def _text(stored: bytes | memoryview | None) -> str:
    """The text, or its beginning with a line that says so."""
    whole = bytes(stored or b"")
    shown = whole[:BODY_HEAD].decode("utf-8", "backslashreplace").replace("\0", "␀")
    return shown if len(whole) <= BODY_HEAD else f"{shown}\n… Only the beginning is shown."


def _wanted_turn(steps: Sequence[Step], trial: Trial, key: str) -> int | None:
    """The turn of the step that the page will open, as far as it is known before the rail is built."""
    named = key.partition(".")[0]
    turns = {str(step.ordinal): step.turn for step in steps}
    return turns.get(named, turns.get(str(trial.first_bad_ordinal)))


def _view(chosen: RailStep | None, steps: Sequence[Step], facts: Facts) -> StepView | None:
    if chosen is None:
        return None
    ordinal = int(chosen.key.split(".")[0])
    step = next(step for step in steps if step.ordinal == ordinal)
    beside = [facts.get(one.pk, {}) for one in steps if one.turn == step.turn and one.kind == Step.Kind.TOOL]
    return view_step(step, chosen.part, facts=facts.get(step.pk, {}), beside=beside, bodies=read_bodies(step))


def _earlier(trial: Trial) -> tuple[EarlierExecution, ...]:
    earlier = Step.objects.filter(trial=trial).exclude(execution=trial.execution).order_by("execution")
    counted = earlier.values_list("execution").annotate(steps=Count("pk"))
    return tuple(EarlierExecution(execution, count) for execution, count in counted)
