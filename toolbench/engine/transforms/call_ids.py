"""Replacement of call ids that an endpoint would refuse."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import count

from toolbench.engine.types import JsonObject, Message, get_called_function
from toolbench.engine.wire_formats.parse_answer import list_structured_calls


class IdRewriter:
    """Replacer of call ids that do not match a pattern; equal ids get equal replacements, different ids different ones.

    An id stays unchanged if none of its possible replacements matches the pattern.

    Args:
        pattern: regular expression that the endpoint's ids must match as a whole.
        messages: the messages whose ids are replaced; no replacement is equal to the id of one of their calls.
    """

    def __init__(self, pattern: str, messages: Iterable[Message]) -> None:
        self._pattern = re.compile(pattern)
        self._replacement_by_id: dict[str, str] = {}
        self._used_ids = {str(call.get("id")) for message in messages for call in list_structured_calls(message)}

    def rewrite_message(self, message: Message) -> Message:
        """Return a copy of the message with ids that match the pattern, or the same object if no id changes."""
        original_id = message.get("tool_call_id")
        if isinstance(original_id, str) and (fitting_id := self._get_fitting_id(original_id, "")) != original_id:
            return {**message, "tool_call_id": fitting_id}
        calls = message.get("tool_calls")
        if not isinstance(calls, list):
            return message
        rewritten_calls = [self._rewrite_call(call) for call in calls]
        are_unchanged = all(old is new for old, new in zip(calls, rewritten_calls, strict=True))
        return message if are_unchanged else {**message, "tool_calls": rewritten_calls}

    def _rewrite_call(self, call: JsonObject) -> JsonObject:
        """Return a copy of the call with an id that matches the pattern, or the same object if the id is kept."""
        original_id = call.get("id") if isinstance(call, dict) else None
        if not isinstance(original_id, str):
            return call
        fitting_id = self._get_fitting_id(original_id, str(get_called_function(call).get("name") or ""))
        return call if fitting_id == original_id else {**call, "id": fitting_id}

    def _get_fitting_id(self, original_id: str, tool_name: str) -> str:
        """Return the id if it matches the pattern, else its replacement, which is chosen at its first use."""
        if self._pattern.fullmatch(original_id):
            return original_id
        if original_id not in self._replacement_by_id:
            candidates = _iterate_candidates(original_id, tool_name, len(self._replacement_by_id), self._used_ids)
            replacement = next(
                (candidate for candidate in candidates if self._pattern.fullmatch(candidate)), original_id
            )
            self._replacement_by_id[original_id] = replacement
            self._used_ids.add(replacement)
        return self._replacement_by_id[original_id]


def _iterate_candidates(
    original_id: str, tool_name: str, replacement_index: int, used_ids: Collection[str]
) -> Iterator[str]:
    """Yield possible replacements for an id, in the forms that known endpoints require.

    The forms, in this order, are nine hexadecimal digits; `functions.NAME:INDEX` (Kimi); 24, 32 or 64 hexadecimal
    digits after each known prefix, and without a prefix. The digits are from a hash of the original id.

    Args:
        original_id: the id that does not match the pattern.
        tool_name: the tool's name in the call; "" for a result whose call did not precede it.
        replacement_index: the number of earlier ids that did not match. Kimi's form ends with this number, or with a
            larger one if that id is used.
        used_ids: the ids of the calls, and the replacements so far.
    """
    digest = hashlib.sha256(original_id.encode("utf-8", "surrogatepass")).hexdigest()
    yield digest[:9]
    kimi_ids = (f"functions.{tool_name}:{index}" for index in count(replacement_index))
    yield next(kimi_id for kimi_id in kimi_ids if kimi_id not in used_ids)
    for prefix in ("call_", "toolu_", "chatcmpl-tool-", ""):
        for length in (24, 32, 64):
            yield prefix + digest[:length]
