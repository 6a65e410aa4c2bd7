"""A provider that counts what each run sent it, plays well, and gives poisoned answers to runs that asked for them."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from benchmarks.chaos.poison import LARGE_POISONS, POISON_BY_NAME
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    text_reply,
    tool_call_reply,
)

MAX_LARGE_ANSWERS = 3  # requests of a run among which large bodies are sent: storing 15 MB takes a busy machine seconds
DELAY_SECONDS = 0.4  # of every answer, so that faults find trials under way
_PATCH_ARGUMENTS = {"request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}


Intervention = Callable[[str, int], ScriptedReply | None]


class CountingProvider:
    """An HTTP server on this machine. The first part of a request's path says to which run it belongs.

    Args:
        delay_seconds: of every answer.
        intervene: called with the run and its number of requests so far; returns a reply in place of the answer.
    """

    def __init__(
        self, *, delay_seconds: float = DELAY_SECONDS, intervene: Intervention = lambda name, count: None
    ) -> None:
        self._delay_seconds = delay_seconds
        self._intervene = intervene
        self._sent: Counter[str] = Counter()
        self._poisons: dict[str, str] = {}
        self._counting = threading.Lock()
        self._server = ScriptedServer(self._answer)

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def base_url(self, name: str, *, poison: str = "") -> str:
        """Return the address for one run, whose answers are poisoned where `poison` names one."""
        self._poisons[name] = poison
        return f"{self._server.base_url}/{name}"

    def count_sent(self, name: str) -> int:
        """Return how many requests of the run have arrived."""
        return self._sent[name]

    def _answer(self, seen: ReceivedRequest) -> ScriptedReply:
        name = seen.path.split("/")[1]
        with self._counting:
            self._sent[name] += 1
            count = self._sent[name]
            self._server.seen.clear()
        if (reply := self._intervene(name, count)) is not None:
            return reply
        poison = self._poisons.get(name, "")
        if poison and count % 3 != 1 and not (poison in LARGE_POISONS and count > MAX_LARGE_ANSWERS):
            return replace(POISON_BY_NAME[poison](), delay=self._delay_seconds)
        return replace(_answer_correctly(seen), delay=self._delay_seconds)


def _answer_correctly(seen: ReceivedRequest) -> ScriptedReply:
    """Three requests to success in scenario happy_path."""
    body = seen.json()
    answered = sum(message["role"] == "tool" for message in body["messages"])
    if not body.get("tools") or answered >= 2:
        return text_reply("Done.")
    return tool_call_reply(("state_patch", _PATCH_ARGUMENTS)) if answered else tool_call_reply(("state_get", {}))
