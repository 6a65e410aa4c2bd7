"""The rail of a trial: one execution as lines, the same parts in every turn, on one axis of time."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.engine.messages import JsonObject
from toolbench.lab.models import Step, Trial

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
    changes = _changes(len(facts.get("response_changes", ())))
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


def _changes(number: int) -> str:
    return "no change" if not number else f"{number} change{'s' if number > 1 else ''}"


def first_bad_key(trial: Trial, rail: Sequence[RailTurn]) -> str:
    """The rail line where it went wrong first: of the judge's step the first line that is bad, else what came back."""
    if trial.first_bad_ordinal is None:
        return ""
    own = [line for turn in rail for line in turn.steps if line.key.startswith(f"{trial.first_bad_ordinal}.")]
    said = next((line.key for line in own if line.part in ("response", "result")), "")
    return next((line.key for line in own if line.bad), said)


def chosen_line(rail: Sequence[RailTurn], key: str, first_bad: str) -> RailStep | None:
    """The line that the page opens: the one of that key, else the first bad one, else the first answer."""
    lines = [line for turn in rail for line in turn.steps]
    wanted = next((line for line in lines if line.key == key), None)
    wanted = wanted or next((line for line in lines if line.key == first_bad), None)
    return wanted or next((line for line in lines if line.part == "response"), None)
