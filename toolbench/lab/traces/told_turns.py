"""A trial's turns told in lines, as read or as received, so that two trials can be laid side by side."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.lab.models import Step
from toolbench.lab.steps.code_lines import laid_out, read_lines
from toolbench.lab.traces.rail import Facts

PIECE = 160  # characters: a longer line is told in pieces, so that a difference deep inside it is found
DEEPEST = 40  # levels of arguments that are looked through
GIVEN = "‹given›"
USUAL_ENDS = {"", "stop", "tool_calls", "function_call", "end_turn", "tool_use"}


@dataclass(frozen=True, slots=True)
class ToldTurn:
    """`gist` is the turn in a few words. `shape` equals whatever values an instance drew: tools, arguments with GIVEN
    for every value that stands in the turn's own request, how results ended; nothing as received. `key` names its line
    on the rail. Without `whole` there is more than was read."""

    turn: int
    key: str
    path: str
    gist: str
    lines: tuple[str, ...]
    shape: tuple[Any, ...]
    whole: bool = True


def told_as_read(steps: Sequence[Step], facts: Facts, requests: Mapping[int, bytes]) -> dict[int, ToldTurn]:
    """Calls and texts as the loop read them, and what the tools gave back, by turn. `requests` by step id, or what is
    read of them."""
    return {turn: _as_read(turn, own, facts=facts, requests=requests) for turn, own in _turns(steps).items()}


def told_as_received(steps: Sequence[Step], bodies: Mapping[int, bytes]) -> dict[int, ToldTurn]:
    """Every answer of a turn, those that were sent again too."""
    return {turn: _as_received(turn, own, bodies) for turn, own in _turns(steps).items()}


def _turns(steps: Sequence[Step]) -> dict[int, list[Step]]:
    turns: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        turns[step.turn].append(step)
    return turns


def _as_read(turn: int, steps: Sequence[Step], *, facts: Facts, requests: Mapping[int, bytes]) -> ToldTurn:
    asked = [step for step in steps if step.kind == Step.Kind.EXCHANGE][-1:]
    ran = [step for step in steps if step.kind == Step.Kind.TOOL]
    calls = [call for step in asked for call in facts.get(step.pk, {}).get("calls") or ()]
    lines = [line for step in asked for line in _answer_lines(step, facts.get(step.pk, {}))]
    lines += [line for step in ran for line in _result_lines(step, facts.get(step.pk, {}))]
    asked_for = "".join(requests.get(step.pk, b"").decode("utf-8", "replace") for step in asked)
    ends = tuple("ok" if step.ok else step.error_code for step in ran)
    failed = tuple(step.error_code for step in asked if not step.ok)
    return ToldTurn(
        turn=turn,
        key=f"{asked[0].ordinal}.calls" if asked and asked[0].ok else f"{steps[-1].ordinal}.response",
        path=asked[0].path if asked else "",
        gist=_gist(calls, ends, failed),
        lines=tuple(_pieces(lines)),
        shape=(failed, [(call["name"], _masked(_value(call["arguments"]), asked_for)) for call in calls], ends),
        whole=all(step.pk in facts for step in steps),
    )


def _answer_lines(step: Step, facts: JsonObject) -> Iterator[str]:
    if not step.ok:
        yield f"{step.error_code}: {step.error_message}"
    yield from str(facts.get("text") or "").splitlines()
    for call in facts.get("calls") or ():
        yield f"calls {call['name']}"
        yield from (line.text for line in laid_out(_value(call["arguments"])))
    if ignored := facts.get("ignored_calls"):
        yield f"{ignored} more calls, ignored"
    if step.finish_reason not in USUAL_ENDS:
        yield f"ended by {step.finish_reason}"


def _result_lines(step: Step, facts: JsonObject) -> Iterator[str]:
    yield f"{step.tool_name or '(no name)'} gave {'ok' if step.ok else step.error_code}"
    envelope: JsonObject = facts.get("envelope") or {}
    told = {key: value for key, value in envelope.items() if key not in ("ok", "tool_name") and value}
    if told:
        yield from (line.text for line in laid_out(told))


def _gist(calls: Sequence[JsonObject], ends: tuple[str, ...], failed: tuple[str, ...]) -> str:
    if failed:
        return f"no answer, {failed[0]}"
    if not calls:
        return "text, no call"
    named = ", ".join(str(call["name"]) or "(no name)" for call in calls)
    return f"calls {named} → {', '.join(ends)}" if ends else f"calls {named}"


def _as_received(turn: int, steps: Sequence[Step], bodies: Mapping[int, bytes]) -> ToldTurn:
    asked = [step for step in steps if step.kind == Step.Kind.EXCHANGE]
    lines = [line for step in asked for line in _received_lines(step, bodies.get(step.pk, b""))]
    return ToldTurn(
        turn=turn,
        key=f"{(asked or steps)[-1].ordinal}.response",
        path=asked[-1].path if asked else "",
        gist="; ".join(f"HTTP {step.status or '–'}, {step.response_bytes:,} bytes" for step in asked),
        lines=tuple(_pieces(lines)),
        shape=(),
        whole=all(step.response_bytes <= len(bodies.get(step.pk, b"")) for step in asked),
    )


def _received_lines(step: Step, body: bytes) -> Iterator[str]:
    if not step.ok:
        yield f"HTTP {step.status or '–'}, {step.error_code}"
    yield from (line.text for line in read_lines(body, whole=max(step.response_bytes, len(body))))


def _value(arguments: Any) -> Any:
    """Arguments that are JSON text, read; any others as they are."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _masked(value: Any, request: str, depth: int = 0) -> Any:
    """`value` with GIVEN in place of every text and number that stands in `request`."""
    if isinstance(value, dict) and depth < DEEPEST:
        return {key: _masked(item, request, depth + 1) for key, item in value.items()}
    if isinstance(value, list) and depth < DEEPEST:
        return [_masked(item, request, depth + 1) for item in value]
    if isinstance(value, str):
        written = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        return GIVEN if any(one in request for one in written) else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return GIVEN if str(value) in request else value
    return value


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line[:PIECE]
        yield from (line[start : start + PIECE] for start in range(PIECE, len(line), PIECE))
