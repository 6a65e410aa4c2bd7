"""The timeline of a trial: one execution as rows, with the same parts in every turn, on one time axis."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step, Trial

StepFacts = dict[int, JsonObject]  # by step id; a step whose facts are too large is not in it


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A row of the timeline.

    Attributes:
        key: `<ordinal>.<part>`.
        at: start as a percentage of the trial's time; None for a row without a bar.
        waiting: time until the first byte as a percentage of the trial's time.
        share: further time as a percentage of the trial's time.
    """

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
        """Return the position of the answer's first byte in percent."""
        return (self.at or 0.0) + self.waiting


@dataclass(frozen=True, slots=True)
class TimelineTurn:
    """A turn of the timeline.

    Attributes:
        user_message: a further user message at the start of the turn; empty if there is none.
    """

    turn: int
    seconds: float
    steps: tuple[TimelineRow, ...]
    user_message: str = ""


def build_timeline(steps: Sequence[Step], facts: StepFacts) -> tuple[TimelineTurn, ...]:
    """Return the turns of one execution. A step without step details shows no counts."""
    if not steps:
        return ()
    whole = max(step.started_ms + step.duration_ms for step in steps) or 1.0
    turns: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        turns[step.turn].append(step)
    return tuple(
        TimelineTurn(
            turn=turn,
            seconds=sum(step.duration_ms for step in turn_steps) / 1000,
            steps=tuple(line for step in turn_steps for line in _build_rows(step, facts.get(step.pk), whole)),
            user_message=next(
                (str(facts[step.pk]["said"]) for step in turn_steps if facts.get(step.pk, {}).get("said")), ""
            ),
        )
        for turn, turn_steps in sorted(turns.items())
    )


def _build_rows(step: Step, facts: JsonObject | None, whole: float) -> list[TimelineRow]:
    return (
        _build_tool_rows(step, facts, whole)
        if step.kind == Step.Kind.TOOL
        else _build_exchange_rows(step, facts, whole)
    )


def _build_exchange_rows(step: Step, facts: JsonObject | None, whole: float) -> list[TimelineRow]:
    again = f", attempt {step.attempt}" if step.attempt > 1 else ""
    first_byte = step.first_byte_ms if step.first_byte_ms is not None else step.duration_ms
    answer = TimelineRow(
        key=f"{step.ordinal}.response",
        part="response",
        title=f"Raw response{again}" if step.ok else f"{step.status or 'No'} answer{again}",
        note=f"{step.duration_ms / 1000:.2f} s",
        bad=step.ok is False,
        at=100 * step.started_ms / whole,
        waiting=100 * first_byte / whole,
        share=100 * max(step.duration_ms - first_byte, 0) / whole,
    )
    request = TimelineRow(f"{step.ordinal}.request", "request", f"Request{again}", f"{step.request_bytes:,} B")
    if not step.ok:
        return [request, answer]
    changes, calls = _describe_counts(facts)
    troubled = bool(facts and facts.get("findings"))
    after = TimelineRow(f"{step.ordinal}.transforms", "transforms", f"After transforms{changes}", "")
    parsed = TimelineRow(f"{step.ordinal}.calls", "calls", f"Parsed calls{calls}", step.finish_reason, bad=troubled)
    return [request, answer, after, parsed]


def _describe_counts(facts: JsonObject | None) -> tuple[str, str]:
    """Return the counts of changes and calls as texts; empty if the step details were not read."""
    if facts is None:
        return "", ""
    ignored = facts.get("ignored_calls", 0)
    left_out = f", {ignored} ignored" if ignored else ""
    changes = _describe_changes(len(facts.get("response_changes", ())))
    return f", {changes}", f", {len(facts.get('calls', ()))}{left_out}"


def _build_tool_rows(step: Step, facts: JsonObject | None, whole: float) -> list[TimelineRow]:
    refused = not (facts or {}).get("executed", True)
    dispatch = TimelineRow(
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
    return [dispatch, TimelineRow(f"{step.ordinal}.result", "result", title, f"{step.response_bytes:,} B")]


def _describe_changes(number: int) -> str:
    return "no change" if not number else f"{number} change{'s' if number > 1 else ''}"


def find_first_bad_key(trial: Trial, rail: Sequence[TimelineTurn]) -> str:
    """Return the key of the row where the trial first went wrong; empty if none is known.

    Of the step that the verdict names, it is the first bad row, else the row of the response or result.
    """
    if trial.first_bad_ordinal is None:
        return ""
    bad_lines = [line for turn in rail for line in turn.steps if line.key.startswith(f"{trial.first_bad_ordinal}.")]
    response_key = next((line.key for line in bad_lines if line.part in ("response", "result")), "")
    return next((line.key for line in bad_lines if line.bad), response_key)


def find_open_row(rail: Sequence[TimelineTurn], key: str, first_bad: str) -> TimelineRow | None:
    """Return the row that the page opens: the one with the key, else the first bad one, else the first response."""
    lines = [line for turn in rail for line in turn.steps]
    open_line = next((line for line in lines if line.key == key), None)
    open_line = open_line or next((line for line in lines if line.key == first_bad), None)
    return open_line or next((line for line in lines if line.part == "response"), None)
