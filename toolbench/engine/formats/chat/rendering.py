"""Rendering of a conversation as one prompt, with the turn tokens of a model family."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from toolbench.engine.errors import PlanError
from toolbench.engine.formats.chat.turn_spec import Frame, ToolsPosition, TurnSpec
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS
from toolbench.engine.formats.registry import get_format, list_format_names
from toolbench.engine.formats.rendering import render, render_results, render_tools
from toolbench.engine.formats.types import TextCall, Tool


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message of the conversation.

    Attributes:
        by: the author; `result` for the result of a call.
        calls: the calls of an assistant, or the one call that a result belongs to.
    """

    by: Literal["system", "user", "assistant", "result"]
    text: str
    reasoning: str = ""
    calls: tuple[TextCall, ...] = ()


def get_turn_spec(format: str) -> TurnSpec:
    """Return how a text format writes turns.

    Raises:
        PlanError: the format is unknown, or its turn tokens are unknown.
    """
    if get_format(format).name not in TURN_SPECS:
        unknown = ", ".join(name for name in list_format_names() if name not in TURN_SPECS)
        raise PlanError(
            f"The turn tokens of the format {format!r} are not known, so no prompt can be written in it. "
            f"Choose another; they are known of all but {unknown}."
        )
    return TURN_SPECS[format]


def render_conversation(said: Sequence[PromptMessage], *, format: str, tools: Iterable[Tool] = ()) -> str:
    """Render the prompt that asks for the assistant's next turn.

    The prompt does not begin with the token that opens a sequence, because servers add it.

    Raises:
        PlanError: the format is unknown, or its turn tokens are unknown.
    """
    turns = get_turn_spec(format)
    told = render_tools(tools, format=format).strip("\n")
    placed = _place_tools(_assign_ids(said, turns), told, turns)
    return turns.begins + "".join(_render_messages(placed, format, turns, reminded=bool(told)))


def _assign_ids(said: Sequence[PromptMessage], turns: TurnSpec) -> list[PromptMessage]:
    """Return the messages with ids of calls that the text format can write.

    Calls are counted over the whole conversation. If several share an id, the first result belongs to the first of
    them.
    """
    if turns.ids is None:
        return list(said)
    written: list[str] = []
    waiting: dict[tuple[str, str], list[str]] = {}
    named: list[PromptMessage] = []
    for one in said:
        if one.by == "assistant":
            made = _build_ids(one.calls, turns.ids, written)
            waiting |= _map_to_calls(one.calls, made)
        else:
            made = [_find_answered_call(call, waiting) for call in one.calls]
        calls = tuple(replace(call, id=call_id) for call, call_id in zip(one.calls, made, strict=True))
        named.append(replace(one, calls=calls) if calls != one.calls else one)
    return named


def _build_ids(calls: Sequence[TextCall], ids: Callable[[TextCall, int], str], written: list[str]) -> list[str]:
    """Return one id for each call, and append them to `written`.

    An id that `written` has already is replaced by an id made from the call's position.
    """
    before = len(written)
    for call in calls:
        made = ids(call, len(written))
        written.append(ids(replace(call, id=""), len(written)) if made in written else made)
    return written[before:]


def _map_to_calls(calls: Sequence[TextCall], made: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for call, call_id in zip(calls, made, strict=True):
        found.setdefault((call.id, call.name), []).append(call_id)
    return found


def _find_answered_call(call: TextCall, waiting: dict[tuple[str, str], list[str]]) -> str:
    made = waiting.get((call.id, call.name), [call.id])
    return made.pop(0) if len(made) > 1 else made[0]


def _fold_system_messages(said: Sequence[PromptMessage], turns: TurnSpec) -> list[PromptMessage]:
    """Join the system messages at the beginning into one.

    If the text format has no system turn, put each system text before the text of the next user message.
    """
    folded: list[PromptMessage] = []
    waiting: list[str] = []
    for one in said:
        first = one.by == "system" and (turns.system is None or not folded or folded[-1].by == "system")
        if first and turns.system is None:
            waiting.append(one.text)
        elif first and folded:
            folded[-1] = replace(folded[-1], text=f"{folded[-1].text}\n\n{one.text}")
        elif one.by == "user" and waiting:
            folded.append(replace(one, text="\n\n".join([*waiting, one.text])))
            waiting = []
        else:
            folded.append(one)
    return [*folded, *([PromptMessage("user", "\n\n".join(waiting))] if waiting else [])]


@dataclass(frozen=True, slots=True)
class _RawText:
    """Text that goes into the prompt unchanged."""

    text: str
    by: str = "raw"


def _place_tools(said: list[PromptMessage], told: str, turns: TurnSpec) -> list[PromptMessage | _RawText]:
    """Return the messages in turns that the text format has, with the description of the tools."""
    if told and turns.tools is ToolsPosition.USER:
        return [*_fold_system_messages(_put_tools_before_user(said, told), turns)]
    return _put_tools_in_system(_fold_system_messages(said, turns), told, turns)


def _put_tools_before_user(said: list[PromptMessage], told: str) -> list[PromptMessage]:
    at = next((place for place, one in enumerate(said) if one.by == "user"), len(said))
    text = f"{told}\n\n{said[at].text}" if at < len(said) else told
    return [*said[:at], PromptMessage("user", text), *said[at + 1 :]]


def _put_tools_in_system(said: list[PromptMessage], told: str, turns: TurnSpec) -> list[PromptMessage | _RawText]:
    if not told:
        return list(said)
    users = [place for place, one in enumerate(said) if one.by == "user"]
    headed = bool(said) and said[0].by == "system"
    raw = _RawText(turns.tools_turn[0] + told + turns.tools_turn[1])
    match turns.tools:
        case ToolsPosition.SYSTEM | ToolsPosition.SYSTEM_HEAD:
            texts = [*([said[0].text] if headed else []), told]
            ordered = texts if turns.tools is ToolsPosition.SYSTEM else texts[::-1]
            return [PromptMessage("system", "\n\n".join(ordered)), *said[1 if headed else 0 :]]
        case ToolsPosition.BEFORE_LAST_USER:
            at = users[-1] if users else 0
            return [*said[:at], raw, *said[at:]]
        case ToolsPosition.BEFORE_SYSTEM:
            return [raw, *said]
    return [*said[:headed], raw, *said[headed:]]


def _render_messages(
    placed: list[PromptMessage | _RawText], format: str, turns: TurnSpec, *, reminded: bool
) -> Iterator[str]:
    after_results = False
    for by, group in groupby(placed, key=lambda one: one.by):
        together = [one for one in group if isinstance(one, PromptMessage)]
        if by == "result":
            pairs = [(call, one.text) for one in together for call in one.calls]
            yield from _render_results(pairs, format, turns)
        elif by == "raw":
            yield "".join(one.text for one in placed if isinstance(one, _RawText))
        else:
            for one in together:
                yield _render_turn(one, format, turns, resumed=after_results)
        after_results = by == "result"
    yield (turns.reminds if reminded else "") + _get_turn_start(turns, resumed=after_results, asked=True)


def _render_results(pairs: Sequence[tuple[TextCall, str]], format: str, turns: TurnSpec) -> Iterator[str]:
    for some in [[pair] for pair in pairs] if turns.apart else [pairs]:
        yield _enclose(render_results(some, format=format), turns.results)


def _render_turn(one: PromptMessage, format: str, turns: TurnSpec, *, resumed: bool) -> str:
    if one.by != "assistant":
        return _enclose(one.text, turns.user if one.by == "user" or turns.system is None else turns.system)
    said = _enclose(one.text, turns.preamble if one.calls else turns.text) if one.text else ""
    joint = turns.joint[0 if said else 1] if one.calls else ""
    written = _render_reasoning(one, format, turns, resumed=resumed) + said + joint + render(one.calls, format=format)
    ends = turns.assistant[1] if turns.pauses is None or not one.calls else turns.pauses
    over = ends and written.endswith(turns.stops)
    begins = _get_turn_start(turns, resumed=resumed, thought=bool(one.reasoning))
    return begins + written + ("" if over else ends)


def _render_reasoning(one: PromptMessage, format: str, turns: TurnSpec, *, resumed: bool) -> str:
    """Render the assistant's reasoning, or the text that replaces it where there is none.

    That text is "" if the turn continues after results.
    """
    if not one.reasoning:
        blank = turns.unthought if turns.unthought_calls is None or not one.calls else turns.unthought_calls
        return "" if resumed and turns.resumes is not None else blank
    if turns.thought is None:
        return render((), format=format, reasoning=one.reasoning)
    return _enclose(one.reasoning, turns.thought)


def _get_turn_start(turns: TurnSpec, *, resumed: bool, thought: bool = False, asked: bool = False) -> str:
    """Return the beginning of the assistant's turn, before the reasoning."""
    if resumed and turns.resumes is not None and not (asked and turns.reopens):
        return "" if thought else turns.resumes
    return turns.asks if asked else turns.assistant[0]


def _enclose(text: str, frame: Frame) -> str:
    return frame[0] + text + frame[1]
