"""One trial step by step, as the trial page shows it. A fixed number of queries, bodies of the chosen step only."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import BinaryField, Count, F, Func, IntegerField, QuerySet, Value

from toolbench.engine.messages import JsonObject
from toolbench.evals import failures
from toolbench.lab.counts.rates import Rate
from toolbench.lab.counts.tallies import tally
from toolbench.lab.models import Cell, Judgement, Run, RunConfig, Step, StepBody, Trial
from toolbench.lab.planning.support import support_sentence
from toolbench.lab.replays.rejudging import get_judgements
from toolbench.lab.steps.facts import load
from toolbench.lab.traces.step_view import StepView, view_step
from toolbench.lab.traces.trials import Neighbours, TrialFilter, get_neighbours, mark

MOST_STEPS = 400
DROPPED = "tools_dropped"
BODY_HEAD = 200_000  # bytes of a body or a text that a page shows
MOST_FACTS = 400_000  # bytes of one step's facts
MOST_FACTS_READ = 4_000_000  # bytes of facts read for a page: of the earliest steps, and of the chosen step's turn

Facts = dict[int, JsonObject]  # by step id; a step whose facts are too large is not in it


@dataclass(frozen=True, slots=True)
class RailStep:
    """One line of the rail. `key` is `<ordinal>.<part>`; `at` and `share` place it on the trial's time, in percent."""

    key: str
    part: str
    title: str
    note: str
    bad: bool = False
    ok: bool = False
    at: float | None = None
    waiting: float = 0.0
    share: float = 0.0
    tool: bool = False

    @property
    def starts(self) -> float:
        """Where the answer's first byte stands, in percent."""
        return (self.at or 0.0) + self.waiting


@dataclass(frozen=True, slots=True)
class RailTurn:
    """`said` is a further message of the user's that the turn begins with."""

    turn: int
    seconds: float
    steps: tuple[RailStep, ...]
    said: str = ""


@dataclass(frozen=True, slots=True)
class Repeat:
    id: int
    index: int
    mark: str
    here: bool


@dataclass(frozen=True, slots=True)
class RepeatFold:
    """Repeats with the same texts and calls. `calls` are the tools of an exemplar, (name, ok) in order."""

    mark: str
    indexes: tuple[int, ...]
    exemplar: int
    here: bool
    calls: tuple[tuple[str, bool], ...]
    ending: str
    fastest: float | None
    slowest: float | None


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str


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
    answered: Rate
    delivered: Rate
    passing: int | None
    judgements: tuple[Judgement, ...]
    support: str  # who said, before the first request, whether the model calls tools

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
    facts = _facts(current, _wanted_turn(current, trial, key))
    rail = build_rail(current, facts)
    first_bad = _first_bad_key(trial, rail)
    chosen = _chosen(rail, key, first_bad)
    repeats = list(_repeats(trial))
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
        repeats=tuple(Repeat(one.pk, one.index, mark(one), one.pk == trial.pk) for one in repeats),
        folds=_folds(repeats, trial),
        answered=counts.given_an_answer(),
        delivered=counts.delivered(),
        passing=next((one.pk for one in repeats if one.outcome == Trial.Outcome.PASS), None),
        judgements=get_judgements(trial),
        support=support_sentence(trial.config.support),
    )


def _class(trial: Trial) -> failures.FailureClass | None:
    """Dropped tools are the first cause, whatever a judge who did not know of them wrote down."""
    dropped = trial.tools_dropped and trial.outcome == Trial.Outcome.FAIL
    code = DROPPED if dropped else trial.failure_class
    return next((one for one in failures.all_classes() if one.code == code), None)


def _headline(trial: Trial, row: failures.FailureClass | None) -> str:
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


def _facts(steps: Sequence[Step], turn: int | None) -> Facts:
    """Facts by step id; those of `turn` first, then from the start as far as the bytes go."""
    size = Func(F("facts"), function="octet_length", output_field=IntegerField())
    sizes = dict(StepBody.objects.filter(step__in=steps).annotate(size=size).values_list("pk", "size"))
    kept: list[int] = []
    left = MOST_FACTS_READ
    for step in sorted(steps, key=lambda step: (step.turn != turn, step.ordinal)):
        if sizes.get(step.pk, MOST_FACTS + 1) <= min(left, MOST_FACTS):
            kept.append(step.pk)
            left -= sizes[step.pk]
    rows = StepBody.objects.filter(pk__in=kept).values_list("pk", "facts")
    return {pk: load(facts) for pk, facts in rows}


def build_rail(steps: Sequence[Step], facts: Facts) -> tuple[RailTurn, ...]:
    """The rail of one execution: the same parts in every turn, times on one shared axis. A step without facts shows
    no counts."""
    if not steps:
        return ()
    whole = max(step.started_ms + step.duration_ms for step in steps) or 1.0
    turns: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        turns[step.turn].append(step)
    return tuple(
        RailTurn(
            turn=turn,
            seconds=sum(step.duration_ms for step in own) / 1000,
            steps=tuple(line for step in own for line in _lines(step, facts.get(step.pk), whole)),
            said=next((str(facts[step.pk]["said"]) for step in own if facts.get(step.pk, {}).get("said")), ""),
        )
        for turn, own in sorted(turns.items())
    )


def _lines(step: Step, facts: JsonObject | None, whole: float) -> list[RailStep]:
    return _tool_lines(step, facts, whole) if step.kind == Step.Kind.TOOL else _exchange_lines(step, facts, whole)


def _exchange_lines(step: Step, facts: JsonObject | None, whole: float) -> list[RailStep]:
    again = f", attempt {step.attempt}" if step.attempt > 1 else ""
    first_byte = step.first_byte_ms if step.first_byte_ms is not None else step.duration_ms
    answer = RailStep(
        key=f"{step.ordinal}.response",
        part="response",
        title=f"Raw response{again}" if step.ok else f"{step.status or 'No'} answer{again}",
        note=f"{step.duration_ms / 1000:.2f} s",
        bad=step.ok is False,
        at=100 * step.started_ms / whole,
        waiting=100 * first_byte / whole,
        share=100 * max(step.duration_ms - first_byte, 0) / whole,
    )
    request = RailStep(f"{step.ordinal}.request", "request", f"Request{again}", f"{step.request_bytes:,} B")
    if not step.ok:
        return [request, answer]
    changes, calls = _counts(facts)
    troubled = bool(facts and facts.get("findings"))
    after = RailStep(f"{step.ordinal}.transforms", "transforms", f"After transforms{changes}", "")
    parsed = RailStep(f"{step.ordinal}.calls", "calls", f"Parsed calls{calls}", step.finish_reason, bad=troubled)
    return [request, answer, after, parsed]


def _counts(facts: JsonObject | None) -> tuple[str, str]:
    """What is said of changes and calls; nothing where the facts were not read."""
    if facts is None:
        return "", ""
    ignored = facts.get("ignored_calls", 0)
    left_out = f", {ignored} ignored" if ignored else ""
    changes = _count(len(facts.get("response_changes", ())), "change")
    return f", {changes}", f", {len(facts.get('calls', ()))}{left_out}"


def _tool_lines(step: Step, facts: JsonObject | None, whole: float) -> list[RailStep]:
    refused = not (facts or {}).get("executed", True)
    dispatch = RailStep(
        key=f"{step.ordinal}.dispatch",
        part="dispatch",
        title=f"Dispatch {step.tool_name or '(no name)'}{', refused' if refused else ''}",
        note=f"{step.duration_ms:.0f} ms",
        bad=not step.ok,
        ok=bool(step.ok),
        at=100 * step.started_ms / whole,
        share=100 * step.duration_ms / whole,
        tool=True,
    )
    title = "Result, ok" if step.ok else f"Result, {step.error_code}"
    return [dispatch, RailStep(f"{step.ordinal}.result", "result", title, f"{step.response_bytes:,} B")]


def _count(number: int, noun: str) -> str:
    return "no change" if not number else f"{number} {noun}{'s' if number > 1 else ''}"


def _first_bad_key(trial: Trial, rail: Sequence[RailTurn]) -> str:
    """The rail line where it went wrong first: of the judge's step the first line that is bad, else what came back."""
    if trial.first_bad_ordinal is None:
        return ""
    own = [line for turn in rail for line in turn.steps if line.key.startswith(f"{trial.first_bad_ordinal}.")]
    said = next((line.key for line in own if line.part in ("response", "result")), "")
    return next((line.key for line in own if line.bad), said)


def _chosen(rail: Sequence[RailTurn], key: str, first_bad: str) -> RailStep | None:
    lines = [line for turn in rail for line in turn.steps]
    wanted = next((line for line in lines if line.key == key), None)
    wanted = wanted or next((line for line in lines if line.key == first_bad), None)
    return wanted or next((line for line in lines if line.part == "response"), None)


def _view(chosen: RailStep | None, steps: Sequence[Step], facts: Facts) -> StepView | None:
    if chosen is None:
        return None
    ordinal = int(chosen.key.split(".")[0])
    step = next(step for step in steps if step.ordinal == ordinal)
    beside = [facts.get(one.pk, {}) for one in steps if one.turn == step.turn and one.kind == Step.Kind.TOOL]
    return view_step(step, chosen.part, facts=facts.get(step.pk, {}), beside=beside, bodies=_bodies(step))


def _bodies(step: Step) -> tuple[bytes, bytes]:
    """The heads of the request and the response."""
    row = StepBody.objects.filter(pk=step.pk).values_list(_head("request"), _head("response")).first()
    return (bytes(row[0]), bytes(row[1])) if row else (b"", b"")


def _head(name: str) -> Func:
    return Func(F(name), Value(1), Value(BODY_HEAD), function="substring", output_field=BinaryField())


def _earlier(trial: Trial) -> tuple[EarlierExecution, ...]:
    earlier = Step.objects.filter(trial=trial).exclude(execution=trial.execution).order_by("execution")
    counted = earlier.values_list("execution").annotate(steps=Count("pk"))
    return tuple(EarlierExecution(execution, count) for execution, count in counted)


def _repeats(trial: Trial) -> QuerySet[Trial]:
    columns = ("index", "outcome", "state", "answer_hash", "duration_ms", "sentence", "cell_id")
    return Trial.objects.filter(cell_id=trial.cell_id).only(*columns).order_by("index")[:500]


def _folds(repeats: Sequence[Trial], trial: Trial) -> tuple[RepeatFold, ...]:
    groups: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for one in repeats:
        if one.state == Trial.State.DONE:
            groups[(one.outcome, one.answer_hash or one.sentence)].append(one)
    exemplars = [own[0].pk for own in groups.values()]
    calls = _calls_of(exemplars)
    folds = (_fold(outcome, own, trial=trial, calls=calls) for (outcome, _), own in groups.items())
    return tuple(sorted(folds, key=lambda fold: (-len(fold.indexes), fold.indexes)))


def _fold(outcome: str, own: list[Trial], *, trial: Trial, calls: dict[int, list[tuple[str, bool]]]) -> RepeatFold:
    times = [one.duration_ms for one in own if one.duration_ms is not None]
    return RepeatFold(
        mark=outcome,
        indexes=tuple(one.index for one in own),
        exemplar=own[0].pk,
        here=any(one.pk == trial.pk for one in own),
        calls=tuple(calls.get(own[0].pk, ())),
        ending=own[0].sentence,
        fastest=min(times, default=None),
        slowest=max(times, default=None),
    )


def _calls_of(trials: Sequence[int]) -> dict[int, list[tuple[str, bool]]]:
    found: dict[int, list[tuple[str, bool]]] = defaultdict(list)
    rows = Step.objects.filter(trial__in=trials, kind=Step.Kind.TOOL, execution=F("trial__execution"))
    for pk, name, ok in rows.order_by("trial", "ordinal").values_list("trial", "tool_name", "ok"):
        found[pk].append((name, bool(ok)))
    return found
