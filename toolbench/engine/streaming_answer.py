"""An answer that is still being written, for whoever watches a stream."""

from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.events import Event
from toolbench.engine.partial_json import read_partial


@dataclass(slots=True)
class StreamingCall:
    """A call as far as it came. `whole` says that its arguments are complete; before, nothing may be executed."""

    name: str = ""
    whole: bool = False
    _pieces: list[str] = field(default_factory=list)

    @property
    def written(self) -> str:
        """The arguments as they were written so far."""
        return "".join(self._pieces)

    @property
    def arguments(self) -> Any:
        """What the arguments already say: open texts, lists and objects end where the text does. None before there is
        anything. Reading takes time in proportion to what is written, so a watcher reads as often as it shows."""
        return read_partial(self.written)

    def grow(self, name: str, arguments: str, *, whole: bool) -> None:
        self.name = name or self.name
        self._pieces.append(arguments)
        self.whole = self.whole or whole


class StreamingAnswer:
    """A listener of the loop's events: give it each of them, and look at what it holds whenever you like. It begins
    anew with every turn, and when a turn is asked for again."""

    def __init__(self) -> None:
        self._begin((-1, -1))

    def _begin(self, attempt: tuple[int, int]) -> None:
        self._attempt = attempt
        self.calls: list[StreamingCall] = []
        self._texts: dict[str, list[str]] = {"text": [], "reasoning": []}

    @property
    def text(self) -> str:
        return "".join(self._texts["text"])

    @property
    def reasoning(self) -> str:
        return "".join(self._texts["reasoning"])

    def take(self, event: Event) -> None:
        """Events of other kinds change nothing."""
        if event.type == "llm_request_retry":
            self._begin((-1, -1))
        if event.type != "llm_delta":
            return
        attempt = (event.turn, event.data.get("attempt", 1))
        if attempt != self._attempt:
            self._begin(attempt)
        place = event.data.get("call")
        if place is None:
            for kind, pieces in self._texts.items():
                pieces.append(event.data[kind])
            return
        self.calls += [StreamingCall() for _ in range(place + 1 - len(self.calls))]
        self.calls[place].grow(event.data["name"], event.data["arguments"], whole=event.data["closed"])
