"""Timeline of a trial: the parts of the steps of one execution as rows on a time axis."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step, Trial

StepFacts = dict[int, JsonObject]  # step details by step id, without details that are too large for a page


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """Timeline row: one part of a step. The time axis ends when the last step ends.

    Attributes:
        key: `<ordinal>.<part>`.
        has_problem: whether the part has a problem.
        is_ok: whether the row is the dispatch of a call that succeeded.
        start_percent: start of the bar in percent of the time axis; None for a row without a bar.
        waiting_percent: length of the bar until the first byte of an answer, in percent of the time axis.
        busy_percent: length of the rest of the bar, in percent of the time axis.
        is_tool: whether the row is a dispatch, whose bar is that of a tool execution.
    """

    key: str
    part: str
    title: str
    note: str
    has_problem: bool = False
    is_ok: bool = False
    start_percent: float | None = None
    waiting_percent: float = 0.0
    busy_percent: float = 0.0
    is_tool: bool = False

    @property
    def first_byte_percent(self) -> float:
        """Return the position of the answer's first byte in percent of the time axis."""
        return (self.start_percent or 0.0) + self.waiting_percent


@dataclass(frozen=True, slots=True)
class TimelineTurn:
    """Turn of the timeline.

    Attributes:
        turn: number of the turn, from 0.
        seconds: sum of the durations of its steps.
        rows: rows of its steps, in order.
        user_message: message that the user sent at the start of the turn, other than the first; empty without one.
    """

    turn: int
    seconds: float
    rows: tuple[TimelineRow, ...]
    user_message: str = ""


def build_timeline(steps: Sequence[Step], facts: StepFacts) -> tuple[TimelineTurn, ...]:
    """Return the turns of the steps of one execution. Rows of a step without step details have no counts."""
    if not steps:
        return ()
    total_ms = max(step.started_ms + step.duration_ms for step in steps) or 1.0
    turns: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        turns[step.turn].append(step)
    return tuple(
        TimelineTurn(
            turn=turn,
            seconds=sum(step.duration_ms for step in turn_steps) / 1000,
            rows=tuple(row for step in turn_steps for row in _build_rows(step, facts.get(step.pk), total_ms)),
            user_message=next(
                (str(facts[step.pk]["said"]) for step in turn_steps if facts.get(step.pk, {}).get("said")), ""
            ),
        )
        for turn, turn_steps in sorted(turns.items())
    )


def _build_rows(step: Step, facts: JsonObject | None, total_ms: float) -> list[TimelineRow]:
    """Return the rows of a step; `total_ms` is the length of the time axis in milliseconds."""
    build = _build_tool_rows if step.kind == Step.Kind.TOOL else _build_exchange_rows
    return build(step, facts, total_ms)


def _build_exchange_rows(step: Step, facts: JsonObject | None, total_ms: float) -> list[TimelineRow]:
    attempt = f", attempt {step.attempt}" if step.attempt > 1 else ""
    first_byte_ms = step.first_byte_ms if step.first_byte_ms is not None else step.duration_ms
    answer = TimelineRow(
        key=f"{step.ordinal}.response",
        part="response",
        title=f"Raw response{attempt}" if step.ok else f"{step.status or 'No'} answer{attempt}",
        note=f"{step.duration_ms / 1000:.2f} s",
        has_problem=step.ok is False,
        start_percent=100 * step.started_ms / total_ms,
        waiting_percent=100 * first_byte_ms / total_ms,
        busy_percent=100 * max(step.duration_ms - first_byte_ms, 0) / total_ms,
    )
    request = TimelineRow(f"{step.ordinal}.request", "request", f"Request{attempt}", f"{step.request_bytes:,} B")
    if not step.ok:
        return [request, answer]
    changes, calls = _describe_counts(facts)
    has_findings = bool(facts and facts.get("findings"))
    transforms = TimelineRow(f"{step.ordinal}.transforms", "transforms", f"After transforms{changes}", "")
    parsed = TimelineRow(
        f"{step.ordinal}.calls", "calls", f"Parsed calls{calls}", step.finish_reason, has_problem=has_findings
    )
    return [request, answer, transforms, parsed]


def _describe_counts(facts: JsonObject | None) -> tuple[str, str]:
    """Return the numbers of changes and of calls, such as ", 2 changes" and ", 1, 3 ignored".

    Both texts are "" if the step details were not read.
    """
    if facts is None:
        return "", ""
    ignored = facts.get("ignored_calls", 0)
    ignored_text = f", {ignored} ignored" if ignored else ""
    change_count = len(facts.get("response_changes", ()))
    changes = "no change" if not change_count else f"{change_count} change{'s' if change_count > 1 else ''}"
    return f", {changes}", f", {len(facts.get('calls', ()))}{ignored_text}"


def _build_tool_rows(step: Step, facts: JsonObject | None, total_ms: float) -> list[TimelineRow]:
    is_refused = not (facts or {}).get("executed", True)
    dispatch = TimelineRow(
        key=f"{step.ordinal}.dispatch",
        part="dispatch",
        title=f"Dispatch {step.tool_name or '(no name)'}{', refused' if is_refused else ''}",
        note=f"{step.duration_ms:.0f} ms",
        has_problem=not step.ok,
        is_ok=bool(step.ok),
        start_percent=100 * step.started_ms / total_ms,
        busy_percent=100 * step.duration_ms / total_ms,
        is_tool=True,
    )
    title = "Result, ok" if step.ok else f"Result, {step.error_code}"
    return [dispatch, TimelineRow(f"{step.ordinal}.result", "result", title, f"{step.response_bytes:,} B")]


def find_first_bad_key(trial: Trial, timeline: Sequence[TimelineTurn]) -> str:
    """Return the key of the row with the first problem.

    The row belongs to the step that the verdict names: it is the first row with a problem, else the response or result.
    The key is empty if the verdict names no step, or the timeline lacks the step.
    """
    if trial.first_bad_ordinal is None:
        return ""
    rows = [row for turn in timeline for row in turn.rows if row.key.startswith(f"{trial.first_bad_ordinal}.")]
    response_key = next((row.key for row in rows if row.part in ("response", "result")), "")
    return next((row.key for row in rows if row.has_problem), response_key)


def find_open_row(timeline: Sequence[TimelineTurn], key: str, first_bad_key: str) -> TimelineRow | None:
    """Return the row to open: that of `key`, else that of `first_bad_key`, else the first response.

    Returns:
        The row; None if the timeline has none of these.
    """
    rows = [row for turn in timeline for row in turn.rows]
    by_key = {row.key: row for row in rows}
    response = next((row for row in rows if row.part == "response"), None)
    return by_key.get(key) or by_key.get(first_bad_key) or response
