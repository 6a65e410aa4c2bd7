"""A hostile provider on real HTTP: it repeats every secret that it is sent, in every spelling and every place."""

import itertools
import json
import re
from collections.abc import Callable

from benchmarks.canary_answers import SPELLINGS, STREAMS, WHOLE, Events
from toolbench.engine.messages import JsonObject
from toolbench.providers.scripted_server import Answer, Ending, Seen

_SENT = ("authorization", "x-api-key", "x-tenant")
_TOOL = "get_weather"


class Hostile:
    """Plays in turn all answers that fit a request, with the next spelling each time. `sent` are the secrets seen."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.played: set[str] = set()
        self._turns = itertools.count()

    def __call__(self, seen: Seen) -> Answer:
        secrets = _secrets(seen)
        self.sent.update(secrets)
        turn = next(self._turns)
        spellings = [*SPELLINGS.items()]
        spelling, spell = spellings[turn % len(spellings)]
        said = " ".join(map(spell, secrets))
        headers = {"x-echo": secrets[0] if secrets else "none", "x-request-id": f"req-{said[:40]!r}"}
        if seen.method == "GET":
            return _json(200, {"data": [{"id": f"model-{secret}"} for secret in secrets]}, headers)
        request = seen.json()
        streams, whole = _fitting(seen.path)
        if request.get("stream"):
            place, events = [*streams.items()][turn % len(streams)]
            self.played.add(f"{place}, {spelling}")
            return _stream(events(said), headers)
        place, (status, make) = [*whole.items()][turn % len(whole)]
        self.played.add(f"{place}, {spelling}")
        value = make(said)
        text = value if isinstance(value, str) else json.dumps(value)
        return Answer(status, headers, text.replace(_TOOL, _offered(request)).encode())


def _fitting(path: str) -> tuple[dict[str, Events], dict[str, tuple[int, Callable[[str], object]]]]:
    """The streams and the whole answers of the API that a path belongs to."""
    kind = "messages" if path.endswith("messages") else "chat" if path.endswith("chat/completions") else "template"
    streams = {name: events for name, (_, events) in STREAMS.items() if _kind(name) == kind}
    whole = {name: (status, make) for name, (_, status, make) in WHOLE.items() if _kind(name) in (kind, "any")}
    return streams, whole


def _kind(place: str) -> str:
    if place.startswith("messages"):
        return "messages"
    if place in ("template", "llama"):
        return "template"
    return "any" if place.startswith(("error", "no answer")) else "chat"


def _secrets(seen: Seen) -> list[str]:
    sent = [seen.headers[name].removeprefix("Bearer ") for name in _SENT if name in seen.headers]
    return sent + re.findall(r"/(sk-[^/]+)", seen.path)


def _offered(request: JsonObject) -> str:
    """The first tool of the request, so that its call runs."""
    tools = request.get("tools") or [{}]
    function = tools[0].get("function") or tools[0]
    return str(function.get("name", _TOOL))


def _stream(events: list[JsonObject], headers: dict[str, str]) -> Answer:
    body = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    return Answer(
        200, {**headers, "content-type": "text/event-stream"}, [*body, b"data: [DONE]\n\n"], ending=Ending.CLOSE
    )


def _json(status: int, value: object, headers: dict[str, str]) -> Answer:
    return Answer(status, {**headers, "content-type": "application/json"}, json.dumps(value).encode())
