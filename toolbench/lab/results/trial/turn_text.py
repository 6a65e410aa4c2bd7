"""Turns of a trial as lines of text for the diff view, parsed or raw."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step
from toolbench.lab.results.trial.request_values import RequestValues
from toolbench.lab.results.trial.timeline import StepFacts
from toolbench.lab.traces.code_view import MAX_LINES, escape_unprintable, render_body_lines, render_json_lines
from toolbench.lab.traces.step_facts import dump_details

MAX_LINE_CHARS = 160  # longer lines are split, so that the diff view shows in which part of a line a difference is
USUAL_FINISH_REASONS = {"", "stop", "tool_calls", "function_call", "end_turn", "tool_use"}


@dataclass(frozen=True, slots=True)
class TurnText:
    """Text of one turn.

    Lines and shape are built on demand, because most turns of two compared trials are equal and need neither.

    Attributes:
        turn: number of the turn, from 0.
        key: key of the timeline row that shows the turn.
        path: method used.
        summary: the turn in a few words.
        content_key: values from which the lines are rendered; turns with equal values have equal lines.
        render_lines: yields the lines.
        build_shape: returns values that are equal for turns that differ only by their instance: outcomes of steps,
            called tools, arguments with GIVEN_PLACEHOLDER for values from the request, unusual finish reasons and
            numbers of ignored calls. It returns None for a raw turn, and if too little was read.
        is_complete: whether the turn was read completely.
    """

    turn: int
    key: str
    path: str
    summary: str
    content_key: tuple[Any, ...]
    render_lines: Callable[[], Iterator[str]]
    build_shape: Callable[[], tuple[Any, ...] | None]
    is_complete: bool = True

    def list_lines(self) -> tuple[tuple[str, ...], bool]:
        """Return the first MAX_LINES lines, and whether the turn has no others."""
        all_lines = tuple(islice(_split_long_lines(self.render_lines()), MAX_LINES + 1))
        return all_lines[:MAX_LINES], self.is_complete and len(all_lines) <= MAX_LINES


def build_parsed_turns(steps: Sequence[Step], facts: StepFacts, requests: Mapping[int, bytes]) -> dict[int, TurnText]:
    """Return parsed turns (texts, calls and results of tools) by turn number.

    Args:
        steps: steps of one execution.
        facts: step details by step id.
        requests: request bodies by step id, which may be truncated.
    """
    return {
        turn: _build_parsed_turn(turn, turn_steps, facts=facts, requests=requests)
        for turn, turn_steps in _group_by_turn(steps).items()
    }


def build_raw_turns(steps: Sequence[Step], bodies: Mapping[int, bytes]) -> dict[int, TurnText]:
    """Return raw turns (bodies of all responses, retries included) by turn number.

    Args:
        steps: steps of one execution.
        bodies: response bodies by step id, which may be truncated.
    """
    return {turn: _build_raw_turn(turn, turn_steps, bodies) for turn, turn_steps in _group_by_turn(steps).items()}


def _group_by_turn(steps: Sequence[Step]) -> dict[int, list[Step]]:
    turns: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        turns[step.turn].append(step)
    return turns


def _build_parsed_turn(
    turn: int, steps: Sequence[Step], *, facts: StepFacts, requests: Mapping[int, bytes]
) -> TurnText:
    exchanges = [step for step in steps if step.kind == Step.Kind.EXCHANGE][-1:]  # the last attempt
    tool_steps = [step for step in steps if step.kind == Step.Kind.TOOL]
    shown_steps = [*exchanges, *tool_steps]
    has_answer = any(step.ok for step in exchanges)
    calls = [call for step in exchanges for call in facts.get(step.pk, {}).get("calls") or ()]
    results = tuple("ok" if step.ok else step.error_code for step in tool_steps)
    errors = tuple(step.error_code for step in exchanges if not step.ok)
    return TurnText(
        turn=turn,
        key=f"{exchanges[0].ordinal}.calls" if has_answer else _build_row_key((exchanges or steps)[-1]),
        path=exchanges[0].path if exchanges else "",
        summary=escape_unprintable(_summarise(calls, results, errors)),
        content_key=tuple(_build_content_key(step, facts.get(step.pk)) for step in shown_steps),
        render_lines=partial(_render_parsed, shown_steps, facts),
        build_shape=partial(_build_shape, shown_steps, facts, requests),
        is_complete=all(step.pk in facts for step in shown_steps),
    )


def _build_row_key(step: Step) -> str:
    """Return the key of the timeline row with the response or result of the step."""
    return f"{step.ordinal}.{'result' if step.kind == Step.Kind.TOOL else 'response'}"


def _build_content_key(step: Step, facts: JsonObject | None) -> tuple[Any, ...]:
    """Return the values from which the lines of a step are rendered, without ids of calls."""
    columns = (step.kind, step.ok, step.error_code, step.error_message, step.finish_reason, step.tool_name)
    if facts is None:
        return columns
    calls = [[call["name"], call["arguments"]] for call in facts.get("calls") or ()]
    return (*columns, dump_details([facts.get("text"), calls, facts.get("ignored_calls"), facts.get("envelope")]))


def _render_parsed(steps: Sequence[Step], facts: StepFacts) -> Iterator[str]:
    """Yield the lines of a turn up to the first step whose details were not read."""
    for step in steps:
        if step.pk not in facts:
            return
        render = _render_result if step.kind == Step.Kind.TOOL else _render_answer
        yield from render(step, facts[step.pk])


def _build_shape(steps: Sequence[Step], facts: StepFacts, requests: Mapping[int, bytes]) -> tuple[Any, ...] | None:
    """Return the shape of a turn.

    Returns:
        None if the details of an exchange, or the request of an exchange with calls, were not read completely.
    """
    exchanges = [step for step in steps if step.kind == Step.Kind.EXCHANGE]
    if any(step.pk not in facts or _is_request_incomplete(step, facts[step.pk], requests) for step in exchanges):
        return None
    results = tuple("ok" if step.ok else step.error_code for step in steps)
    return (results, *(_build_answer_shape(step, facts[step.pk], requests.get(step.pk, b"")) for step in exchanges))


def _is_request_incomplete(step: Step, facts: JsonObject, requests: Mapping[int, bytes]) -> bool:
    """Return whether the step has calls and its request body was read only in part."""
    return bool(facts.get("calls")) and step.request_bytes > len(requests.get(step.pk, b""))


def _build_answer_shape(step: Step, facts: JsonObject, request: bytes) -> tuple[Any, ...]:
    calls = facts.get("calls") or ()
    request_values = RequestValues.from_request(request if calls else b"")
    masked_calls = [(call["name"], request_values.mask_values(_parse_arguments(call["arguments"]))) for call in calls]
    unusual_finish = step.finish_reason if step.finish_reason not in USUAL_FINISH_REASONS else ""
    return masked_calls, unusual_finish, facts.get("ignored_calls") or 0


def _render_answer(step: Step, facts: JsonObject) -> Iterator[str]:
    if not step.ok:
        yield f"{step.error_code}: {step.error_message}"
    yield from str(facts.get("text") or "").splitlines()
    for call in facts.get("calls") or ():
        yield f"calls {call['name']}"
        yield from (line.text for line in render_json_lines(_parse_arguments(call["arguments"])))
    if ignored := facts.get("ignored_calls"):
        yield f"{ignored} more calls, ignored"
    if step.finish_reason not in USUAL_FINISH_REASONS:
        yield f"ended by {step.finish_reason}"


def _render_result(step: Step, facts: JsonObject) -> Iterator[str]:
    yield f"{step.tool_name or '(no name)'} gave {'ok' if step.ok else step.error_code}"
    envelope: JsonObject = facts.get("envelope") or {}
    values = {key: value for key, value in envelope.items() if key not in ("ok", "tool_name") and value}
    if values:
        yield from (line.text for line in render_json_lines(values))


def _summarise(calls: Sequence[JsonObject], results: tuple[str, ...], errors: tuple[str, ...]) -> str:
    if errors:
        return f"no answer, {errors[0]}"
    if not calls:
        return "text, no call"
    tool_names = ", ".join(str(call["name"]) or "(no name)" for call in calls)
    return f"calls {tool_names} → {', '.join(results)}" if results else f"calls {tool_names}"


def _build_raw_turn(turn: int, steps: Sequence[Step], bodies: Mapping[int, bytes]) -> TurnText:
    exchanges = [step for step in steps if step.kind == Step.Kind.EXCHANGE]
    return TurnText(
        turn=turn,
        key=_build_row_key((exchanges or steps)[-1]),
        path=exchanges[-1].path if exchanges else "",
        summary="; ".join(f"HTTP {step.status or '–'}, {step.response_bytes:,} bytes" for step in exchanges),
        content_key=tuple((step.ok, step.status, step.error_code, bodies.get(step.pk, b"")) for step in exchanges),
        render_lines=lambda: (line for step in exchanges for line in _render_raw(step, bodies.get(step.pk, b""))),
        build_shape=lambda: None,
        is_complete=all(step.response_bytes <= len(bodies.get(step.pk, b"")) for step in exchanges),
    )


def _render_raw(step: Step, body: bytes) -> Iterator[str]:
    if not step.ok:
        yield f"HTTP {step.status or '–'}, {step.error_code}"
    yield from (line.text for line in render_body_lines(body, body_bytes=max(step.response_bytes, len(body))))


def _parse_arguments(arguments: Any) -> Any:
    """Return the value of a JSON text; return another text, and arguments that are no text, unchanged."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _split_long_lines(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line[:MAX_LINE_CHARS]
        yield from (line[start : start + MAX_LINE_CHARS] for start in range(MAX_LINE_CHARS, len(line), MAX_LINE_CHARS))
