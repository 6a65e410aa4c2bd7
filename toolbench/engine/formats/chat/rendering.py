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


def render_conversation(messages: Sequence[PromptMessage], *, format: str, tools: Iterable[Tool] = ()) -> str:
    """Render the prompt that asks for the assistant's next turn.

    The prompt does not begin with the token that opens a sequence, because servers add it.

    Raises:
        PlanError: the format is unknown, or its turn tokens are unknown.
    """
    turns = get_turn_spec(format)
    tools_text = render_tools(tools, format=format).strip("\n")
    placed = _place_tools(_assign_ids(messages, turns), tools_text, turns)
    return turns.begins + "".join(_render_messages(placed, format, turns, reminded=bool(tools_text)))


def _assign_ids(messages: Sequence[PromptMessage], turns: TurnSpec) -> list[PromptMessage]:
    """Return the messages with ids of calls that the text format can write.

    Calls are counted over the whole conversation. If several share an id, the first result belongs to the first of
    them.
    """
    if turns.ids is None:
        return list(messages)
    written: list[str] = []
    waiting: dict[tuple[str, str], list[str]] = {}
    named: list[PromptMessage] = []
    for message in messages:
        if message.by == "assistant":
            made = _build_ids(message.calls, turns.ids, written)
            waiting |= _map_to_calls(message.calls, made)
        else:
            made = [_find_answered_call(call, waiting) for call in message.calls]
        calls = tuple(replace(call, id=call_id) for call, call_id in zip(message.calls, made, strict=True))
        named.append(replace(message, calls=calls) if calls != message.calls else message)
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


def _fold_system_messages(messages: Sequence[PromptMessage], turns: TurnSpec) -> list[PromptMessage]:
    """Join the system messages at the beginning into one.

    If the text format has no system turn, put each system text before the text of the next user message.
    """
    folded: list[PromptMessage] = []
    waiting: list[str] = []
    for message in messages:
        first = message.by == "system" and (turns.system is None or not folded or folded[-1].by == "system")
        if first and turns.system is None:
            waiting.append(message.text)
        elif first and folded:
            folded[-1] = replace(folded[-1], text=f"{folded[-1].text}\n\n{message.text}")
        elif message.by == "user" and waiting:
            folded.append(replace(message, text="\n\n".join([*waiting, message.text])))
            waiting = []
        else:
            folded.append(message)
    return [*folded, *([PromptMessage("user", "\n\n".join(waiting))] if waiting else [])]


@dataclass(frozen=True, slots=True)
class _RawText:
    """Text that goes into the prompt unchanged."""

    text: str
    by: str = "raw"


def _place_tools(messages: list[PromptMessage], tools_text: str, turns: TurnSpec) -> list[PromptMessage | _RawText]:
    """Return the messages in turns that the text format has, with the description of the tools."""
    if tools_text and turns.tools is ToolsPosition.USER:
        return [*_fold_system_messages(_put_tools_before_user(messages, tools_text), turns)]
    return _put_tools_in_system(_fold_system_messages(messages, turns), tools_text, turns)


def _put_tools_before_user(messages: list[PromptMessage], tools_text: str) -> list[PromptMessage]:
    at = next((place for place, message in enumerate(messages) if message.by == "user"), len(messages))
    text = f"{tools_text}\n\n{messages[at].text}" if at < len(messages) else tools_text
    return [*messages[:at], PromptMessage("user", text), *messages[at + 1 :]]


def _put_tools_in_system(
    messages: list[PromptMessage], tools_text: str, turns: TurnSpec
) -> list[PromptMessage | _RawText]:
    if not tools_text:
        return list(messages)
    users = [place for place, message in enumerate(messages) if message.by == "user"]
    headed = bool(messages) and messages[0].by == "system"
    raw = _RawText(turns.tools_turn[0] + tools_text + turns.tools_turn[1])
    match turns.tools:
        case ToolsPosition.SYSTEM | ToolsPosition.SYSTEM_HEAD:
            texts = [*([messages[0].text] if headed else []), tools_text]
            ordered = texts if turns.tools is ToolsPosition.SYSTEM else texts[::-1]
            return [PromptMessage("system", "\n\n".join(ordered)), *messages[1 if headed else 0 :]]
        case ToolsPosition.BEFORE_LAST_USER:
            at = users[-1] if users else 0
            return [*messages[:at], raw, *messages[at:]]
        case ToolsPosition.BEFORE_SYSTEM:
            return [raw, *messages]
    return [*messages[:headed], raw, *messages[headed:]]


def _render_messages(
    placed: list[PromptMessage | _RawText], format: str, turns: TurnSpec, *, reminded: bool
) -> Iterator[str]:
    after_results = False
    for by, group in groupby(placed, key=lambda message: message.by):
        together = [message for message in group if isinstance(message, PromptMessage)]
        if by == "result":
            pairs = [(call, message.text) for message in together for call in message.calls]
            yield from _render_results(pairs, format, turns)
        elif by == "raw":
            yield "".join(message.text for message in placed if isinstance(message, _RawText))
        else:
            for message in together:
                yield _render_turn(message, format, turns, resumed=after_results)
        after_results = by == "result"
    yield (turns.reminds if reminded else "") + _get_turn_start(turns, resumed=after_results, is_reprompted=True)


def _render_results(pairs: Sequence[tuple[TextCall, str]], format: str, turns: TurnSpec) -> Iterator[str]:
    for batch in [[pair] for pair in pairs] if turns.apart else [pairs]:
        yield _enclose(render_results(batch, format=format), turns.results)


def _render_turn(message: PromptMessage, format: str, turns: TurnSpec, *, resumed: bool) -> str:
    if message.by != "assistant":
        return _enclose(message.text, turns.user if message.by == "user" or turns.system is None else turns.system)
    text = _enclose(message.text, turns.preamble if message.calls else turns.text) if message.text else ""
    joint = turns.joint[0 if text else 1] if message.calls else ""
    written = (
        _render_reasoning(message, format, turns, resumed=resumed) + text + joint + render(message.calls, format=format)
    )
    ends = turns.assistant[1] if turns.pauses is None or not message.calls else turns.pauses
    over = ends and written.endswith(turns.stops)
    begins = _get_turn_start(turns, resumed=resumed, thought=bool(message.reasoning))
    return begins + written + ("" if over else ends)


def _render_reasoning(message: PromptMessage, format: str, turns: TurnSpec, *, resumed: bool) -> str:
    """Render the assistant's reasoning, or the text that replaces it where there is none.

    That text is "" if the turn continues after results.
    """
    if not message.reasoning:
        blank = turns.unthought if turns.unthought_calls is None or not message.calls else turns.unthought_calls
        return "" if resumed and turns.resumes is not None else blank
    if turns.thought is None:
        return render((), format=format, reasoning=message.reasoning)
    return _enclose(message.reasoning, turns.thought)


def _get_turn_start(turns: TurnSpec, *, resumed: bool, thought: bool = False, is_reprompted: bool = False) -> str:
    """Return the beginning of the assistant's turn, before the reasoning."""
    if resumed and turns.resumes is not None and not (is_reprompted and turns.reopens):
        return "" if thought else turns.resumes
    return turns.asks if is_reprompted else turns.assistant[0]


def _enclose(text: str, frame: Frame) -> str:
    return frame[0] + text + frame[1]
