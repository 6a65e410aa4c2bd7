"""Provider that counts the requests of each run, and gives correct or poisoned answers."""

import threading
import time
from bisect import bisect_right
from collections import Counter, defaultdict
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

MAX_LARGE_ANSWERS = 3  # later requests of a run get no large body: storing 15 MB takes a busy machine seconds
DELAY_SECONDS = 0.4  # of every answer, so that trials are running when a fault happens
_PATCH_ARGUMENTS = {"request_id": "r1", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}


Intervention = Callable[[str, int], ScriptedReply | None]


class CountingProvider:
    """HTTP server on this machine. The first part of a request's path names the run to which it belongs.

    Args:
        delay_seconds: delay of every answer.
        host: the address of this machine at which it serves.
        intervene: called with the name of the run and its number of requests so far; returns a reply in place of the
            answer, or None.
    """

    def __init__(
        self,
        *,
        delay_seconds: float = DELAY_SECONDS,
        host: str = "127.0.0.1",
        intervene: Intervention = lambda name, count: None,
    ) -> None:
        self._delay_seconds = delay_seconds
        self._intervene = intervene
        self._sent: Counter[str] = Counter()
        self._arrivals: defaultdict[str, list[float]] = defaultdict(list)
        self._poisons: dict[str, str] = {}
        self._delays: dict[str, float] = {}
        self._counting = threading.Lock()
        self._server = ScriptedServer(self._answer, host=host)

    def start(self) -> None:
        """Start serving."""
        self._server.start()

    def stop(self) -> None:
        """Stop serving."""
        self._server.stop()

    def build_base_url(self, name: str, *, poison: str = "", delay_seconds: float | None = None) -> str:
        """Return the address for one run, and keep how it is answered.

        Args:
            name: name of the run.
            poison: name of the poisoned answer of two in three requests; "" for correct answers.
            delay_seconds: delay of its answers; None for that of the provider.
        """
        self._poisons[name] = poison
        if delay_seconds is not None:
            self._delays[name] = delay_seconds
        return f"{self._server.base_url}/{name}"

    def count_sent(self, name: str) -> int:
        """Return how many requests of the run have arrived."""
        return self._sent[name]

    def count_most_in_flight(self, name: str) -> int:
        """Return the greatest number of requests of the run that waited for their answers at the same time."""
        with self._counting:
            arrivals = list(self._arrivals[name])
        ended = [moment + self._get_delay(name) for moment in arrivals]
        return max(
            (place - bisect_right(ended, moment, hi=place - 1) for place, moment in enumerate(arrivals, 1)), default=0
        )

    def _answer(self, seen: ReceivedRequest) -> ScriptedReply:
        name = seen.path.split("/")[1]
        with self._counting:
            self._sent[name] += 1
            count = self._sent[name]
            self._arrivals[name].append(time.monotonic())
            self._server.seen.clear()
        if (reply := self._intervene(name, count)) is not None:
            return reply
        poison = self._poisons.get(name, "")
        if poison and count % 3 != 1 and not (poison in LARGE_POISONS and count > MAX_LARGE_ANSWERS):
            return replace(POISON_BY_NAME[poison](), delay=self._get_delay(name))
        return replace(_answer_correctly(seen), delay=self._get_delay(name))

    def _get_delay(self, name: str) -> float:
        return self._delays.get(name, self._delay_seconds)


def _answer_correctly(seen: ReceivedRequest) -> ScriptedReply:
    """Answer as a model that passes scenario happy_path with three requests."""
    body = seen.json()
    answered = sum(message["role"] == "tool" for message in body["messages"])
    if not body.get("tools") or answered >= 2:
        return text_reply("Done.")
    return tool_call_reply(("state_patch", _PATCH_ARGUMENTS)) if answered else tool_call_reply(("state_get", {}))
