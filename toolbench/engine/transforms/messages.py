"""Transforms of the messages of a request."""

import hashlib
import re
from collections.abc import Callable
from itertools import takewhile

from toolbench.engine.strict_json import get_object
from toolbench.engine.transforms.call_ids import IdRewriter
from toolbench.engine.transforms.registry import TransformContext, TransformKind
from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.parse_answer import INTERRUPTED_RESULT, list_structured_calls

MESSAGE: TransformKind[list[Message]] = TransformKind("message")

_NINE_CHARACTER_ID = re.compile(r"[a-zA-Z0-9]{9}")
SKIP_VALIDATOR = "skip_thought_signature_validator"  # a thought signature that turns off Gemini's check of signatures


@MESSAGE.register
def assistant_tool_calls_content_null_if_blank(messages: list[Message]) -> list[Message]:
    """Set the content of assistant messages with calls to null if it is blank text."""

    def set_null(message: Message) -> Message:
        content = message.get("content")
        return {**message, "content": None} if isinstance(content, str) and not content.strip() else message

    return _map_calling_messages(messages, set_null)


@MESSAGE.register
def assistant_tool_calls_content_empty_if_null(messages: list[Message]) -> list[Message]:
    """Set the content of assistant messages with calls to an empty text if it is null or missing."""

    def set_empty(message: Message) -> Message:
        return message if message.get("content") is not None else {**message, "content": ""}

    return _map_calling_messages(messages, set_empty)


@MESSAGE.register
def assistant_tool_calls_reasoning_content_empty_if_missing(messages: list[Message]) -> list[Message]:
    """Add an empty reasoning_content to assistant messages that have calls but no reasoning_content."""

    def add_reasoning(message: Message) -> Message:
        return message if "reasoning_content" in message else {**message, "reasoning_content": ""}

    return _map_calling_messages(messages, add_reasoning)


@MESSAGE.register
def assistant_tool_calls_signature_skip_validator_if_missing(messages: list[Message]) -> list[Message]:
    """Give calls without a thought signature a `signature` that turns off Gemini's check.

    A call has a signature in OpenRouter's field `signature` or in Google's `extra_content.google.thought_signature`.
    """

    def sign_call(call: object) -> object:
        is_unsigned = (
            isinstance(call, dict) and "signature" not in call and "thought_signature" not in _get_google_extra(call)
        )
        return {**call, "signature": SKIP_VALIDATOR} if isinstance(call, dict) and is_unsigned else call

    def sign_calls(message: Message) -> Message:
        calls = message["tool_calls"]
        signed_calls = [sign_call(call) for call in calls]
        return {**message, "tool_calls": signed_calls} if _is_changed(calls, signed_calls) else message

    return _map_calling_messages(messages, sign_calls)


@MESSAGE.register
def tool_call_ids_nine_characters(messages: list[Message]) -> list[Message]:
    """Replace call ids that are not nine letters or digits by the beginning of a hash, as Mistral requires.

    A call and its result get the same id. The stored conversation keeps the original ids.
    """
    changed_messages = [_shorten_ids(message) for message in messages]
    return changed_messages if _is_changed(messages, changed_messages) else messages


@MESSAGE.register
def midturn_system_to_user(messages: list[Message]) -> list[Message]:
    """Move system messages that are not at the beginning into the next user message.

    Some endpoints accept system messages only at the beginning. System messages after the last user message become a
    user message at the end.
    """
    first_index = next((index for index, message in enumerate(messages) if not _is_system(message)), len(messages))
    if not any(map(_is_system, messages[first_index:])):
        return messages
    moved_messages, pending_texts = list(messages[:first_index]), list[str]()
    for message in messages[first_index:]:
        if _is_system(message):
            pending_texts.append(_get_text(message))
        elif pending_texts and message.get("role") == "user":
            moved_messages.append({**message, "content": _prepend_texts(pending_texts, message.get("content"))})
            pending_texts = []
        else:
            moved_messages.append(message)
    return (
        [*moved_messages, {"role": "user", "content": "\n\n".join(pending_texts)}] if pending_texts else moved_messages
    )


@MESSAGE.register
def missing_tool_results_added(messages: list[Message]) -> list[Message]:
    """Add the result INTERRUPTED_RESULT for each call that has an id and no result.

    OpenAI and others refuse a history in which a result is missing.
    """
    completed_messages: list[Message] = []
    unanswered_ids: list[object] = []
    for index, message in enumerate([*messages, {}]):
        if message.get("role") != "tool":
            completed_messages += (
                {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED_RESULT} for call_id in unanswered_ids
            )
            unanswered_ids = _list_unanswered_ids(message, messages[index + 1 :]) if _has_calls(message) else []
        completed_messages.append(message)
    return completed_messages[:-1] if len(completed_messages) > len(messages) + 1 else messages


def _list_unanswered_ids(message: Message, next_messages: list[Message]) -> list[object]:
    """Return the ids of the message's calls that get no result before the next assistant message."""
    messages_before_answer = takewhile(lambda message: message.get("role") != "assistant", next_messages)
    answered_ids = [message.get("tool_call_id") for message in messages_before_answer if message.get("role") == "tool"]
    return [
        call_id
        for call in list_structured_calls(message)
        if (call_id := call.get("id")) and call_id not in answered_ids
    ]


@MESSAGE.register_with_context
def tool_call_ids_fit_pattern(messages: list[Message], context: TransformContext) -> list[Message]:
    """Replace call ids that do not match the endpoint's pattern by ids that match it.

    A call and its result get the same id. The stored conversation keeps the original ids.
    """
    if not context.id_pattern:
        return messages
    rewriter = IdRewriter(context.id_pattern, messages)
    changed_messages = [rewriter.rewrite_message(message) for message in messages]
    return changed_messages if _is_changed(messages, changed_messages) else messages


def _get_google_extra(call: JsonObject) -> JsonObject:
    """Return the fields that Gemini's OpenAI-compatible endpoint adds to a call; {} if there are none."""
    return get_object(get_object(call.get("extra_content")).get("google"))


def _is_system(message: Message) -> bool:
    return message.get("role") in ("system", "developer")


def _prepend_texts(texts: list[str], content: object) -> object:
    """Return the content with `texts` before it: as parts if it is a list, else joined by blank lines."""
    if isinstance(content, list):
        return [*({"type": "text", "text": text} for text in texts), *content]
    return "\n\n".join([*texts, str(content or "")])


def _get_text(message: Message) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def _shorten_ids(message: Message) -> Message:
    """Return the message with ids of nine characters; the same object if no id changes."""
    if message.get("role") == "tool":
        call_id = message.get("tool_call_id")
        return {**message, "tool_call_id": _shorten_id(call_id)} if call_id != _shorten_id(call_id) else message
    calls = message.get("tool_calls")
    if not _has_calls(message) or not isinstance(calls, list):
        return message
    shortened_calls = [
        {**call, "id": _shorten_id(call.get("id"))} if isinstance(call, dict) else call for call in calls
    ]
    return {**message, "tool_calls": shortened_calls} if shortened_calls != calls else message


def _shorten_id(call_id: object) -> object:
    if not isinstance(call_id, str) or _NINE_CHARACTER_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def _map_calling_messages(messages: list[Message], change_message: Callable[[JsonObject], JsonObject]) -> list[Message]:
    """Apply `change_message` to assistant messages with calls; return the same list if none changes."""
    changed_messages = [change_message(message) if _has_calls(message) else message for message in messages]
    return changed_messages if _is_changed(messages, changed_messages) else messages


def _has_calls(message: object) -> bool:
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return False
    calls = message.get("tool_calls")
    return isinstance(calls, list) and bool(calls)


def _is_changed(values_before: list[JsonObject], values_after: list[object] | list[JsonObject]) -> bool:
    """Return whether any value was replaced by another object; an unchanged value stays the same object."""
    return any(old is not new for old, new in zip(values_before, values_after, strict=True))
