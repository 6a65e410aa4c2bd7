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
        author: `system`, `user`, `assistant`, or `result` for the result of a call.
        calls: the calls of an assistant, or the one call that a result belongs to.
    """

    author: Literal["system", "user", "assistant", "result"]
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
            f"Choose another text format; the turn tokens are known of all but {unknown}."
        )
    return TURN_SPECS[format]


def render_conversation(messages: Sequence[PromptMessage], *, format: str, tools: Iterable[Tool] = ()) -> str:
    """Render the prompt that asks for the assistant's next turn.

    The prompt does not begin with the token that opens a sequence, because servers add it.

    Raises:
        PlanError: the format is unknown, or its turn tokens are unknown.
        ValueError, TypeError: JSON cannot hold the arguments of a call.
    """
    turn_spec = get_turn_spec(format)
    tools_text = render_tools(tools, format=format).strip("\n")
    prompt_parts = _insert_tools(_assign_ids(messages, turn_spec), tools_text, turn_spec)
    turns = _render_messages(prompt_parts, format, turn_spec, has_tools=bool(tools_text))
    return turn_spec.prompt_start + "".join(turns)


def _assign_ids(messages: Sequence[PromptMessage], turn_spec: TurnSpec) -> list[PromptMessage]:
    """Return the messages with ids of calls that the text format can write.

    The position from which an id is built counts all calls before it in the conversation. The results of calls that
    share an id and a name belong to these calls in order.
    """
    if turn_spec.build_id is None:
        return list(messages)
    used_ids: list[str] = []
    ids_by_call: dict[tuple[str, str], list[str]] = {}
    numbered_messages: list[PromptMessage] = []
    for message in messages:
        if message.author == "assistant":
            call_ids = _build_ids(message.calls, turn_spec.build_id, used_ids)
            ids_by_call |= _group_ids_by_call(message.calls, call_ids)
        else:
            call_ids = [_take_answered_id(call, ids_by_call) for call in message.calls]
        calls = tuple(replace(call, id=call_id) for call, call_id in zip(message.calls, call_ids, strict=True))
        numbered_messages.append(replace(message, calls=calls) if calls != message.calls else message)
    return numbered_messages


def _build_ids(calls: Sequence[TextCall], build_id: Callable[[TextCall, int], str], used_ids: list[str]) -> list[str]:
    """Return one id for each call, and append them to `used_ids`.

    An id that `used_ids` has already is replaced by an id made from the call's position or a later one.
    """
    count_before = len(used_ids)
    for call in calls:
        position = len(used_ids)
        call_id = build_id(call, position)
        while call_id in used_ids:
            call_id = build_id(replace(call, id=""), position)
            position += 1
        used_ids.append(call_id)
    return used_ids[count_before:]


def _group_ids_by_call(calls: Sequence[TextCall], call_ids: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Return the new ids by the original id and the name of their calls, in call order."""
    ids_by_call: dict[tuple[str, str], list[str]] = {}
    for call, call_id in zip(calls, call_ids, strict=True):
        ids_by_call.setdefault((call.id, call.name), []).append(call_id)
    return ids_by_call


def _take_answered_id(call: TextCall, ids_by_call: dict[tuple[str, str], list[str]]) -> str:
    """Return the new id of the call that a result belongs to, or the result's own id if there is no such call.

    The new id is removed from `ids_by_call` unless it is the last one for its key.
    """
    call_ids = ids_by_call.get((call.id, call.name), [call.id])
    return call_ids.pop(0) if len(call_ids) > 1 else call_ids[0]


def _join_system_messages(messages: Sequence[PromptMessage], turn_spec: TurnSpec) -> list[PromptMessage]:
    """Join system messages that follow one another.

    If the turn format has no system turn, put each system text before the text of the next user message, or at the end
    into a user message of its own.
    """
    joined_messages: list[PromptMessage] = []
    system_texts: list[str] = []
    for message in messages:
        is_joined = message.author == "system" and (
            turn_spec.system_frame is None or not joined_messages or joined_messages[-1].author == "system"
        )
        if is_joined and turn_spec.system_frame is None:
            system_texts.append(message.text)
        elif is_joined and joined_messages:
            joined_messages[-1] = replace(joined_messages[-1], text=f"{joined_messages[-1].text}\n\n{message.text}")
        elif message.author == "user" and system_texts:
            joined_messages.append(replace(message, text="\n\n".join([*system_texts, message.text])))
            system_texts = []
        else:
            joined_messages.append(message)
    return [*joined_messages, *([PromptMessage("user", "\n\n".join(system_texts))] if system_texts else [])]


@dataclass(frozen=True, slots=True)
class _RawText:
    """Text that goes into the prompt unchanged."""

    text: str
    author: str = "raw"


def _insert_tools(
    messages: list[PromptMessage], tools_text: str, turn_spec: TurnSpec
) -> list[PromptMessage | _RawText]:
    """Return the messages with the tools, and with system messages as the turn format allows them."""
    if tools_text and turn_spec.tools_position is ToolsPosition.USER:
        return [*_join_system_messages(_insert_tools_before_user(messages, tools_text), turn_spec)]
    return _insert_tools_by_position(_join_system_messages(messages, turn_spec), tools_text, turn_spec)


def _insert_tools_before_user(messages: list[PromptMessage], tools_text: str) -> list[PromptMessage]:
    """Put the tools before the text of the first user message, or into a new user message at the end."""
    index = next((position for position, message in enumerate(messages) if message.author == "user"), len(messages))
    text = f"{tools_text}\n\n{messages[index].text}" if index < len(messages) else tools_text
    return [*messages[:index], PromptMessage("user", text), *messages[index + 1 :]]


def _insert_tools_by_position(
    messages: list[PromptMessage], tools_text: str, turn_spec: TurnSpec
) -> list[PromptMessage | _RawText]:
    """Return the messages with the tools in the system text or in a turn of their own."""
    if not tools_text:
        return list(messages)
    user_indexes = [position for position, message in enumerate(messages) if message.author == "user"]
    has_system = bool(messages) and messages[0].author == "system"
    tools_message = _RawText(turn_spec.tools_frame[0] + tools_text + turn_spec.tools_frame[1])
    match turn_spec.tools_position:
        case ToolsPosition.SYSTEM | ToolsPosition.SYSTEM_HEAD:
            texts = [*([messages[0].text] if has_system else []), tools_text]
            ordered_texts = texts if turn_spec.tools_position is ToolsPosition.SYSTEM else texts[::-1]
            return [PromptMessage("system", "\n\n".join(ordered_texts)), *messages[1 if has_system else 0 :]]
        case ToolsPosition.BEFORE_LAST_USER:
            last_user_index = user_indexes[-1] if user_indexes else 0
            return [*messages[:last_user_index], tools_message, *messages[last_user_index:]]
        case ToolsPosition.BEFORE_SYSTEM:
            return [tools_message, *messages]
    return [*messages[:has_system], tools_message, *messages[has_system:]]


def _render_messages(
    prompt_parts: list[PromptMessage | _RawText], format: str, turn_spec: TurnSpec, *, has_tools: bool
) -> Iterator[str]:
    """Yield the turns of the conversation and the beginning of the requested turn."""
    follows_results = False
    for author, group in groupby(prompt_parts, key=lambda message: message.author):
        group_messages = [message for message in group if isinstance(message, PromptMessage)]
        if author == "result":
            pairs = [(call, message.text) for message in group_messages for call in message.calls]
            yield from _render_results(pairs, format, turn_spec)
        elif author == "raw":
            yield "".join(message.text for message in prompt_parts if isinstance(message, _RawText))
        else:
            for message in group_messages:
                yield _render_turn(message, format, turn_spec, follows_results=follows_results)
        follows_results = author == "result"
    turn_start = _get_turn_start(turn_spec, follows_results=follows_results, is_requested=True)
    yield (turn_spec.reminder if has_tools else "") + turn_start


def _render_results(pairs: Sequence[tuple[TextCall, str]], format: str, turn_spec: TurnSpec) -> Iterator[str]:
    for batch in [[pair] for pair in pairs] if turn_spec.has_frame_per_result else [pairs]:
        yield _enclose(render_results(batch, format=format), turn_spec.results_frame)


def _render_turn(message: PromptMessage, format: str, turn_spec: TurnSpec, *, follows_results: bool) -> str:
    """Render one message. `follows_results` says that results come directly before it."""
    if message.author != "assistant":
        system_frame = turn_spec.system_frame or turn_spec.user_frame
        return _enclose(message.text, turn_spec.user_frame if message.author == "user" else system_frame)
    text_frame = turn_spec.preamble_frame if message.calls else turn_spec.text_frame
    text = _enclose(message.text, text_frame) if message.text else ""
    separator = turn_spec.separators_before_calls[0 if text else 1] if message.calls else ""
    reasoning = _render_reasoning(message, format, turn_spec, follows_results=follows_results)
    content = reasoning + text + separator + render(message.calls, format=format)
    end_after_calls = turn_spec.end_after_calls if message.calls else None
    turn_end = turn_spec.assistant_frame[1] if end_after_calls is None else end_after_calls
    has_stop_text = turn_end and content.endswith(turn_spec.stop_texts)
    turn_start = _get_turn_start(turn_spec, follows_results=follows_results, has_reasoning=bool(message.reasoning))
    return turn_start + content + ("" if has_stop_text else turn_end)


def _render_reasoning(message: PromptMessage, format: str, turn_spec: TurnSpec, *, follows_results: bool) -> str:
    """Render the assistant's reasoning, or the text that replaces it where there is none.

    The replacement is "" after results if the turn format has `start_after_results`.
    """
    if not message.reasoning:
        text_before_calls = turn_spec.missing_reasoning_before_calls if message.calls else None
        replacement = turn_spec.missing_reasoning if text_before_calls is None else text_before_calls
        return "" if follows_results and turn_spec.start_after_results is not None else replacement
    if turn_spec.reasoning_frame is None:
        return render((), format=format, reasoning=message.reasoning)
    return _enclose(message.reasoning, turn_spec.reasoning_frame)


def _get_turn_start(
    turn_spec: TurnSpec, *, follows_results: bool, has_reasoning: bool = False, is_requested: bool = False
) -> str:
    """Return the beginning of the assistant's turn, before the reasoning.

    `is_requested` says that the prompt asks for this turn.
    """
    start_after_results = turn_spec.start_after_results if follows_results else None
    if start_after_results is not None and not (is_requested and turn_spec.keeps_requested_start):
        return "" if has_reasoning else start_after_results
    return turn_spec.effective_turn_start if is_requested else turn_spec.assistant_frame[0]


def _enclose(text: str, frame: Frame) -> str:
    return frame[0] + text + frame[1]
