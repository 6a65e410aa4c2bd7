"""Text of a streaming answer: the filter that withholds possible calls, and the queue to the client."""

import asyncio
from collections.abc import Callable
from typing import Any

from toolbench.engine import formats
from toolbench.engine.events import Event
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.gateway.request import GatewayAnswer

_TEXT_TRANSFORMS = frozenset({"tool_calls_from_text", "assistant_content_tool_call_tags_to_tool_calls"})
_JSON_METHODS = ("text_json", "constrained")  # their calls are JSON, which may begin anywhere in the text
_JSON_STARTS = ("{", "[", "`")


class CertainText:
    """Listener of the loop's events that sends text as soon as it cannot be part of a call.

    It sends text of the first attempt with text only: a client appends all text that it gets, so it would append the
    text of a retry or of a re-prompt to that of the first attempt.
    """

    def __init__(self, policy: Policy, tools: ToolRegistry, send: Callable[[str], None]) -> None:
        """Create the listener.

        Args:
            policy: settings that say how calls may be written in the text.
            tools: tools of the request.
            send: receives each part of the text.
        """
        self._send = send
        self._sent_parts: list[str] = []
        self._sent_attempt: tuple[int, int] | None = None  # turn and attempt whose text is sent
        self._last_attempt: tuple[int, int] | None = None  # turn and attempt of the last event
        self._has_json_calls = bool(tools.definitions) and policy.method in _JSON_METHODS
        self._has_json_begun = False
        has_text_calls = policy.method == "template" or _TEXT_TRANSFORMS.intersection(policy.response_transforms)
        self._decoder = (
            formats.stream(policy.text_format, [tool.to_openai() for tool in tools.definitions])
            if tools.definitions and has_text_calls and not self._has_json_calls
            else None
        )

    def receive(self, event: Event) -> None:
        """Send the text of an event of the loop that cannot be part of a call."""
        if event.type != "llm_delta":
            return
        self._last_attempt = attempt = (event.turn, event.data.get("attempt", 1))
        text = event.data.get("text")
        if not text:
            return
        self._sent_attempt = self._sent_attempt or attempt
        if attempt == self._sent_attempt:
            certain_text = self._find_certain_text(text)
            if certain_text:
                self._sent_parts.append(certain_text)
                self._send(certain_text)

    def _find_certain_text(self, text: str) -> str:
        if self._decoder is not None:
            return "".join(part.text for part in self._decoder.feed(text) if part.kind == "text")
        if not self._has_json_calls:
            return text
        if self._has_json_begun:
            return ""
        starts = [start for character in _JSON_STARTS if (start := text.find(character)) >= 0]
        self._has_json_begun = bool(starts)
        return text[: min(starts, default=len(text))]

    def find_rest(self, answer: GatewayAnswer) -> str | None:
        """Find the end of the final text that was not sent.

        Returns:
            The end; "" if a transform changed the text that was sent, or a later attempt has calls and no text. None if
            a later attempt has another text than was sent, so that the client has text that the answer does not have.
        """
        sent_text = "".join(self._sent_parts)
        if answer.text.startswith(sent_text):
            return answer.text[len(sent_text) :]
        if self._last_attempt == self._sent_attempt or (answer.calls and not answer.text):
            return ""
        return None


class TextSender:
    """Queue for the parts of a text, from the turn that receives them to the stream that sends them.

    Attributes:
        has_begun: whether a part was ever queued.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._changed = asyncio.Event()  # set by a part, and by the end of the turn
        self.has_begun = False

    def send(self, text: str) -> None:
        """Queue a part; an empty one is ignored."""
        if text:
            self._parts.append(text)
            self._changed.set()
            self.has_begun = True

    async def wait_for_part(self, task: "asyncio.Task[Any]") -> str | None:
        """Return the queued text as soon as there is text; None if the task has ended and the queue is empty."""
        task.add_done_callback(self._notice_end)
        try:
            while not self._parts:
                if task.done():
                    return None
                self._changed.clear()
                await self._changed.wait()
        finally:  # also if the client disconnects meanwhile
            task.remove_done_callback(self._notice_end)
        parts, self._parts = self._parts, []
        return "".join(parts)

    def _notice_end(self, task: "asyncio.Task[Any]") -> None:
        self._changed.set()
