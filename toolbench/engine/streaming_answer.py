"""State of an answer that is still being received, for display."""

from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.events import Event
from toolbench.engine.partial_json import read_partial


@dataclass(slots=True)
class StreamingCall:
    """A call of a streaming answer.

    Attributes:
        name: the tool's name; "" until it is received.
        is_complete: whether the arguments are complete. Do not execute the call while they are not.
    """

    name: str = ""
    is_complete: bool = False
    _parts: list[str] = field(default_factory=list)

    @property
    def arguments_text(self) -> str:
        """The text of the arguments so far."""
        return "".join(self._parts)

    @property
    def arguments(self) -> Any:
        """The value of the arguments so far (see `read_partial`); None if they cannot be read yet.

        Each access parses all of `arguments_text` again, in linear time.
        """
        return read_partial(self.arguments_text)

    def add_part(self, name: str, arguments: str, *, is_complete: bool) -> None:
        """Add the next part of the call; an empty name keeps the name so far."""
        self.name = name or self.name
        self._parts.append(arguments)
        self.is_complete = self.is_complete or is_complete


class StreamingAnswer:
    """The state of a streaming answer, built from the events of the loop.

    Pass every event to `take`, and read the attributes at any time. The first delta of a new turn, or of a new attempt
    of a turn, clears the state, and so does the event `llm_request_retry`, after which the turn is repeated.

    Attributes:
        calls: the calls so far, in the order of the answer.
    """

    def __init__(self) -> None:
        self._begin((-1, -1))

    def _begin(self, attempt: tuple[int, int]) -> None:
        """Clear the state for an attempt.

        Args:
            attempt: the numbers of the turn, from 0, and of the attempt, from 1; (-1, -1) if it is not known yet.
        """
        self._attempt = attempt
        self.calls: list[StreamingCall] = []
        self._texts: dict[str, list[str]] = {"text": [], "reasoning": []}

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts["text"])

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(self._texts["reasoning"])

    def take(self, event: Event) -> None:
        """Update the state by an event; events other than deltas and `llm_request_retry` change nothing."""
        if event.type == "llm_request_retry":
            self._begin((-1, -1))
        if event.type != "llm_delta":
            return
        attempt = (event.turn, event.data.get("attempt", 1))
        if attempt != self._attempt:
            self._begin(attempt)
        call_index = event.data.get("call")
        if call_index is None:
            for kind, parts in self._texts.items():
                parts.append(event.data[kind])
            return
        self.calls += [StreamingCall() for _ in range(call_index + 1 - len(self.calls))]
        self.calls[call_index].add_part(event.data["name"], event.data["arguments"], is_complete=event.data["closed"])
