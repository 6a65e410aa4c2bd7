"""Hostile provider: it repeats every secret that it receives, in every spelling and every place."""

import itertools
import json
import re
from collections.abc import Callable

from benchmarks.canary_answers import SPELLING_BY_NAME, STREAM_BY_PLACE, WHOLE_ANSWER_BY_PLACE, BuildEvents
from toolbench.engine.types import JsonObject
from toolbench.providers.scripted_server import ConnectionEnd, ReceivedRequest, ScriptedReply

_SECRET_HEADERS = ("authorization", "x-api-key", "x-tenant")
_TOOL_NAME = "get_weather"


class HostileProvider:
    """Gives each answer that fits a request in turn, with the next spelling each time.

    Attributes:
        sent: the secrets that it received.
        played: pairs of place and spelling that were answered.
    """

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.played: set[str] = set()
        self._turns = itertools.count()

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        secrets = _find_secrets(seen)
        self.sent.update(secrets)
        turn = next(self._turns)
        spellings = [*SPELLING_BY_NAME.items()]
        spelling, spell = spellings[turn % len(spellings)]
        spelled = " ".join(map(spell, secrets))
        headers = {"x-echo": secrets[0] if secrets else "none", "x-request-id": f"req-{spelled[:40]!r}"}
        if seen.method == "GET":
            return _build_json(200, {"data": [{"id": f"model-{secret}"} for secret in secrets]}, headers)
        request = seen.json()
        streams, whole = _list_fitting_answers(seen.path)
        if request.get("stream"):
            place, build_events = [*streams.items()][turn % len(streams)]
            self.played.add(f"{place}, {spelling}")
            return _build_stream(build_events(spelled), headers)
        place, (status, build_answer) = [*whole.items()][turn % len(whole)]
        self.played.add(f"{place}, {spelling}")
        value = build_answer(spelled)
        text = value if isinstance(value, str) else json.dumps(value)
        return ScriptedReply(status, headers, text.replace(_TOOL_NAME, _find_offered_tool(request)).encode())


def _list_fitting_answers(path: str) -> tuple[dict[str, BuildEvents], dict[str, tuple[int, Callable[[str], object]]]]:
    """Return streams and whole answers by place, for the API that a path belongs to."""
    kind = "messages" if path.endswith("messages") else "chat" if path.endswith("chat/completions") else "template"
    streams = {name: events for name, (_, events) in STREAM_BY_PLACE.items() if _find_api(name) == kind}
    whole = {
        name: (status, build_answer)
        for name, (_, status, build_answer) in WHOLE_ANSWER_BY_PLACE.items()
        if _find_api(name) in (kind, "any")
    }
    return streams, whole


def _find_api(place: str) -> str:
    if place.startswith("messages"):
        return "messages"
    if place in ("template", "llama"):
        return "template"
    return "any" if place.startswith(("error", "no answer")) else "chat"


def _find_secrets(seen: ReceivedRequest) -> list[str]:
    sent = [seen.headers[name].removeprefix("Bearer ") for name in _SECRET_HEADERS if name in seen.headers]
    return sent + re.findall(r"/(sk-[^/]+)", seen.path)


def _find_offered_tool(request: JsonObject) -> str:
    """Return the name of the first tool of the request, so that its call runs."""
    tools = request.get("tools") or [{}]
    function = tools[0].get("function") or tools[0]
    return str(function.get("name", _TOOL_NAME))


def _build_stream(events: list[JsonObject], headers: dict[str, str]) -> ScriptedReply:
    body = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    return ScriptedReply(
        200, {**headers, "content-type": "text/event-stream"}, [*body, b"data: [DONE]\n\n"], ending=ConnectionEnd.CLOSE
    )


def _build_json(status: int, value: object, headers: dict[str, str]) -> ScriptedReply:
    return ScriptedReply(status, {**headers, "content-type": "application/json"}, json.dumps(value).encode())
