"""Rendering of a conversation as one prompt in the turn format of a model family."""

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
        by: the author: `system`, `user`, `assistant`, or `result` for the result of a call.
        calls: the calls of an assistant, or the one call that a result belongs to.
    """

    by: Literal["system", "user", "assistant", "result"]
    text: str
    reasoning: str = ""
    calls: tuple[TextCall, ...] = ()


def get_turn_spec(format: str) -> TurnSpec:
    """Return the turn format that belongs to a text format.

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
    used_ids: list[str] = []
    ids_by_call: dict[tuple[str, str], list[str]] = {}
    numbered_messages: list[PromptMessage] = []
    for message in messages:
        if message.by == "assistant":
            call_ids = _build_ids(message.calls, turns.ids, used_ids)
            ids_by_call |= _group_ids_by_call(message.calls, call_ids)
        else:
            call_ids = [_take_answered_id(call, ids_by_call) for call in message.calls]
        calls = tuple(replace(call, id=call_id) for call, call_id in zip(message.calls, call_ids, strict=True))
        numbered_messages.append(replace(message, calls=calls) if calls != message.calls else message)
    return numbered_messages


def _build_ids(calls: Sequence[TextCall], build_id: Callable[[TextCall, int], str], used_ids: list[str]) -> list[str]:
    """Return one id for each call, and append them to `used_ids`.

    An id that `used_ids` has already is replaced by an id made from the call's position.
    """
    count_before = len(used_ids)
    for call in calls:
        call_id = build_id(call, len(used_ids))
        used_ids.append(build_id(replace(call, id=""), len(used_ids)) if call_id in used_ids else call_id)
    return used_ids[count_before:]


def _group_ids_by_call(calls: Sequence[TextCall], call_ids: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    ids_by_call: dict[tuple[str, str], list[str]] = {}
    for call, call_id in zip(calls, call_ids, strict=True):
        ids_by_call.setdefault((call.id, call.name), []).append(call_id)
    return ids_by_call


def _take_answered_id(call: TextCall, ids_by_call: dict[tuple[str, str], list[str]]) -> str:
    call_ids = ids_by_call.get((call.id, call.name), [call.id])
    return call_ids.pop(0) if len(call_ids) > 1 else call_ids[0]


def _fold_system_messages(messages: Sequence[PromptMessage], turns: TurnSpec) -> list[PromptMessage]:
    """Join the system messages at the beginning into one.

    If the text format has no system turn, put each system text before the text of the next user message.
    """
    folded: list[PromptMessage] = []
    system_texts: list[str] = []
    for message in messages:
        is_folded = message.by == "system" and (turns.system is None or not folded or folded[-1].by == "system")
        if is_folded and turns.system is None:
            system_texts.append(message.text)
        elif is_folded and folded:
            folded[-1] = replace(folded[-1], text=f"{folded[-1].text}\n\n{message.text}")
        elif message.by == "user" and system_texts:
            folded.append(replace(message, text="\n\n".join([*system_texts, message.text])))
            system_texts = []
        else:
            folded.append(message)
    return [*folded, *([PromptMessage("user", "\n\n".join(system_texts))] if system_texts else [])]


@dataclass(frozen=True, slots=True)
class _RawText:
    """Text that goes into the prompt unchanged."""

    text: str
    by: str = "raw"


def _place_tools(messages: list[PromptMessage], tools_text: str, turns: TurnSpec) -> list[PromptMessage | _RawText]:
    """Return the messages with the tools inserted, and with system messages as the turn format allows them."""
    if tools_text and turns.tools is ToolsPosition.USER:
        return [*_fold_system_messages(_put_tools_before_user(messages, tools_text), turns)]
    return _put_tools_in_system(_fold_system_messages(messages, turns), tools_text, turns)


def _put_tools_before_user(messages: list[PromptMessage], tools_text: str) -> list[PromptMessage]:
    index = next((position for position, message in enumerate(messages) if message.by == "user"), len(messages))
    text = f"{tools_text}\n\n{messages[index].text}" if index < len(messages) else tools_text
    return [*messages[:index], PromptMessage("user", text), *messages[index + 1 :]]


def _put_tools_in_system(
    messages: list[PromptMessage], tools_text: str, turns: TurnSpec
) -> list[PromptMessage | _RawText]:
    """Return the messages with the tools in the system text or in a turn of their own."""
    if not tools_text:
        return list(messages)
    user_indexes = [position for position, message in enumerate(messages) if message.by == "user"]
    has_system = bool(messages) and messages[0].by == "system"
    tools_message = _RawText(turns.tools_turn[0] + tools_text + turns.tools_turn[1])
    match turns.tools:
        case ToolsPosition.SYSTEM | ToolsPosition.SYSTEM_HEAD:
            texts = [*([messages[0].text] if has_system else []), tools_text]
            ordered = texts if turns.tools is ToolsPosition.SYSTEM else texts[::-1]
            return [PromptMessage("system", "\n\n".join(ordered)), *messages[1 if has_system else 0 :]]
        case ToolsPosition.BEFORE_LAST_USER:
            last_user = user_indexes[-1] if user_indexes else 0
            return [*messages[:last_user], tools_message, *messages[last_user:]]
        case ToolsPosition.BEFORE_SYSTEM:
            return [tools_message, *messages]
    return [*messages[:has_system], tools_message, *messages[has_system:]]


def _render_messages(
    placed: list[PromptMessage | _RawText], format: str, turns: TurnSpec, *, reminded: bool
) -> Iterator[str]:
    """Yield the turns of the conversation and the beginning of the requested turn."""
    after_results = False
    for by, group in groupby(placed, key=lambda message: message.by):
        group_messages = [message for message in group if isinstance(message, PromptMessage)]
        if by == "result":
            pairs = [(call, message.text) for message in group_messages for call in message.calls]
            yield from _render_results(pairs, format, turns)
        elif by == "raw":
            yield "".join(message.text for message in placed if isinstance(message, _RawText))
        else:
            for message in group_messages:
                yield _render_turn(message, format, turns, resumed=after_results)
        after_results = by == "result"
    yield (turns.reminds if reminded else "") + _get_turn_start(turns, resumed=after_results, is_reprompted=True)


def _render_results(pairs: Sequence[tuple[TextCall, str]], format: str, turns: TurnSpec) -> Iterator[str]:
    for batch in [[pair] for pair in pairs] if turns.apart else [pairs]:
        yield _enclose(render_results(batch, format=format), turns.results)


def _render_turn(message: PromptMessage, format: str, turns: TurnSpec, *, resumed: bool) -> str:
    """Render one message. `resumed` says that an assistant's turn continues after results."""
    if message.by != "assistant":
        return _enclose(message.text, turns.user if message.by == "user" or turns.system is None else turns.system)
    text = _enclose(message.text, turns.preamble if message.calls else turns.text) if message.text else ""
    separator = turns.joint[0 if text else 1] if message.calls else ""
    content = (
        _render_reasoning(message, format, turns, resumed=resumed)
        + text
        + separator
        + render(message.calls, format=format)
    )
    end = turns.assistant[1] if turns.pauses is None or not message.calls else turns.pauses
    is_ended = end and content.endswith(turns.stops)
    start = _get_turn_start(turns, resumed=resumed, thought=bool(message.reasoning))
    return start + content + ("" if is_ended else end)


def _render_reasoning(message: PromptMessage, format: str, turns: TurnSpec, *, resumed: bool) -> str:
    """Render the assistant's reasoning, or the text that replaces it where there is none.

    That text is "" if the turn continues after results.
    """
    if not message.reasoning:
        replacement = turns.unthought if turns.unthought_calls is None or not message.calls else turns.unthought_calls
        return "" if resumed and turns.resumes is not None else replacement
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
