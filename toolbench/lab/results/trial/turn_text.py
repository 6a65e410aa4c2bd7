"""A trial's turns told in lines, as read or as received, so that two trials can be laid side by side."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.lab.models import Step
from toolbench.lab.results.trial.request_values import GivenValues
from toolbench.lab.results.trial.timeline import Facts
from toolbench.lab.traces.code_view import MOST_LINES, laid_out, printable, read_lines
from toolbench.lab.traces.step_facts import dump

PIECE = 160  # characters: a longer line is told in pieces, so that a difference deep inside it is found
USUAL_ENDS = {"", "stop", "tool_calls", "function_call", "end_turn", "tool_use"}


@dataclass(frozen=True, slots=True)
class ToldTurn:
    """`gist` is the turn in a few words; `key` names its line on the rail. Two turns whose `said` is equal tell the
    same lines. `shape` equals whatever values an instance drew: tools, arguments with GIVEN for every value that the
    turn's own request gave, how answers and results ended; None where the calls or their request were not read whole.
    Without `whole` there is more than was read. Lines and shape are made when they are asked for: most turns
    of a pair are equal."""

    turn: int
    key: str
    path: str
    gist: str
    said: tuple[Any, ...]
    tell: Callable[[], Iterator[str]]
    shape: Callable[[], tuple[Any, ...] | None]
    whole: bool = True

    def lines(self) -> tuple[tuple[str, ...], bool]:
        """The first MOST_LINES, and whether they are all."""
        told = tuple(islice(_pieces(self.tell()), MOST_LINES + 1))
        return told[:MOST_LINES], self.whole and len(told) <= MOST_LINES


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
    told = [*asked, *ran]
    calls = [call for step in asked for call in facts.get(step.pk, {}).get("calls") or ()]
    ends = tuple("ok" if step.ok else step.error_code for step in ran)
    failed = tuple(step.error_code for step in asked if not step.ok)
    return ToldTurn(
        turn=turn,
        key=_key(steps[-1]) if not asked else f"{asked[0].ordinal}.calls" if asked[0].ok else _key(asked[0]),
        path=asked[0].path if asked else "",
        gist=printable(_gist(calls, ends, failed)),
        said=tuple(_said(step, facts.get(step.pk)) for step in told),
        tell=partial(_read_lines, told, facts),
        shape=partial(_shape, told, facts, requests),
        whole=all(step.pk in facts for step in told),
    )


def _key(step: Step) -> str:
    """The line of the rail that shows what came back."""
    return f"{step.ordinal}.{'result' if step.kind == Step.Kind.TOOL else 'response'}"


def _said(step: Step, facts: JsonObject | None) -> tuple[Any, ...]:
    """All that lines are made of, ids of calls left out."""
    columns = (step.kind, step.ok, step.error_code, step.error_message, step.finish_reason, step.tool_name)
    if facts is None:
        return columns
    calls = [[call["name"], call["arguments"]] for call in facts.get("calls") or ()]
    return (*columns, dump([facts.get("text"), calls, facts.get("ignored_calls"), facts.get("envelope")]))


def _read_lines(steps: Sequence[Step], facts: Facts) -> Iterator[str]:
    """As far as the facts go: what is told is the beginning of the turn."""
    for step in steps:
        if step.pk not in facts:
            return
        tell = _result_lines if step.kind == Step.Kind.TOOL else _answer_lines
        yield from tell(step, facts[step.pk])


def _shape(steps: Sequence[Step], facts: Facts, requests: Mapping[int, bytes]) -> tuple[Any, ...] | None:
    asked = [step for step in steps if step.kind == Step.Kind.EXCHANGE]
    if any(step.pk not in facts or _cut(step, facts[step.pk], requests) for step in asked):
        return None
    ends = tuple("ok" if step.ok else step.error_code for step in steps)
    return (ends, *(_answer_shape(step, facts[step.pk], requests.get(step.pk, b"")) for step in asked))


def _cut(step: Step, facts: JsonObject, requests: Mapping[int, bytes]) -> bool:
    """Whether what its calls were given was not read to the end."""
    return bool(facts.get("calls")) and step.request_bytes > len(requests.get(step.pk, b""))


def _answer_shape(step: Step, facts: JsonObject, request: bytes) -> tuple[Any, ...]:
    calls = facts.get("calls") or ()
    given = GivenValues.of_request(request if calls else b"")
    masked = [(call["name"], given.masked(_value(call["arguments"]))) for call in calls]
    unusual = step.finish_reason if step.finish_reason not in USUAL_ENDS else ""
    return masked, unusual, facts.get("ignored_calls") or 0


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
    return ToldTurn(
        turn=turn,
        key=_key((asked or steps)[-1]),
        path=asked[-1].path if asked else "",
        gist="; ".join(f"HTTP {step.status or '–'}, {step.response_bytes:,} bytes" for step in asked),
        said=tuple((step.ok, step.status, step.error_code, bodies.get(step.pk, b"")) for step in asked),
        tell=lambda: (line for step in asked for line in _received_lines(step, bodies.get(step.pk, b""))),
        shape=lambda: None,
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


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line[:PIECE]
        yield from (line[start : start + PIECE] for start in range(PIECE, len(line), PIECE))
