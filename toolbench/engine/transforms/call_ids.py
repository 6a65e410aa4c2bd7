"""Ids of calls in the form that an endpoint takes."""

import hashlib
import re
from collections.abc import Iterator

from toolbench.engine.types import JsonObject, Message, get_called_function


class IdRewriter:
    """Stands in for ids that do not match a pattern whole. Equal ids get equal stand-ins; an id for which none of the
    known forms fits is left as it is."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)
        self._made: dict[str, str] = {}

    def rewrite_message(self, message: Message) -> Message:
        """A new message where an id of it had to change, else the very same."""
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
    """What endpoints are known to want: nine letters and digits, Kimi's functions.name:0, call_ or toolu_ in front."""
    digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()
    yield digest[:9]
    yield f"functions.{name}:{place}"
    for before in ("call_", "toolu_", "chatcmpl-tool-", ""):
        for length in (24, 32, 64):
            yield before + digest[:length]
