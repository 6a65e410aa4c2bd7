"""Ids of calls in the form that an endpoint accepts."""

import hashlib
import re
from collections.abc import Iterator

from toolbench.engine.types import JsonObject, Message, get_called_function


class IdRewriter:
    """Replaces ids that do not match a pattern. Equal ids get equal replacements.

    An id for which none of the known forms matches stays unchanged.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)
        self._made: dict[str, str] = {}

    def rewrite_message(self, message: Message) -> Message:
        """Return a new message if one of its ids has to change, or else the same object."""
        given = message.get("tool_call_id")
        if isinstance(given, str) and (fitting := self._fitting(given, "")) != given:
            return {**message, "tool_call_id": fitting}
        calls = message.get("tool_calls")
        if not isinstance(calls, list):
            return message
        changed = [self._call(call) for call in calls]
        same = all(old is new for old, new in zip(calls, changed, strict=True))
        return message if same else {**message, "tool_calls": changed}

    def _call(self, call: JsonObject) -> JsonObject:
        given = call.get("id") if isinstance(call, dict) else None
        if not isinstance(given, str):
            return call
        fitting = self._fitting(given, str(get_called_function(call).get("name") or ""))
        return call if fitting == given else {**call, "id": fitting}

    def _fitting(self, given: str, name: str) -> str:
        if self._pattern.fullmatch(given):
            return given
        if given not in self._made:
            forms = _iterate_candidates(given, name, len(self._made))
            self._made[given] = next((form for form in forms if self._pattern.fullmatch(form)), given)
        return self._made[given]


def _iterate_candidates(given: str, name: str, place: int) -> Iterator[str]:
    """Yield ids in the known forms: nine letters and digits, functions.name:0 (Kimi), prefixes such as call_."""
    digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()
    yield digest[:9]
    yield f"functions.{name}:{place}"
    for before in ("call_", "toolu_", "chatcmpl-tool-", ""):
        for length in (24, 32, 64):
            yield before + digest[:length]
