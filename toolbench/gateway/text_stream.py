"""Text of a streaming answer: the filter that withholds possible calls, and the queue to the client."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

from toolbench.engine import formats
from toolbench.engine.events import Event
from toolbench.engine.formats.types import ToolSchemas
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.gateway.request import GatewayAnswer

# Transforms that read calls from the text.
_TEXT_TRANSFORMS = frozenset({"tool_calls_from_text", "assistant_content_tool_call_tags_to_tool_calls"})
_JSON_METHODS = ("text_json", "constrained")  # their calls are JSON, which may begin anywhere in the text
_JSON_START = re.compile(r"[{\[`]")  # start of an object, of an array, or of a code fence around one of them


class TextListener:
    """Listener of the loop's events that sends text as soon as it cannot be part of a call.

    Only the text of the first attempt that has text is sent. A client appends all text that it receives, so it would
    append the text of a retry or of a re-prompt to the text of the first attempt.

    If the method reads calls from the text, or if a transform does so and the request has tools, the listener sends
    neither inline reasoning nor white space before the text. White space after the text is withheld until it is known
    to belong to the final text.
    """

    def __init__(self, policy: Policy, tools: ToolRegistry, send: Callable[[str], None]) -> None:
        """Create the listener.

        Args:
            policy: settings that decide how calls may be written in the text.
            tools: tools of the request.
            send: receives each part of the text.
        """
        self._send = send
        self._sent_parts: list[str] = []
        self._reasoning_part_count = 0  # how many of the first sent parts turned out to be reasoning
        self._withheld_parts: list[str] = []  # text without reasoning that follows the sent parts
        self._sent_attempt: tuple[int, int] | None = None  # turn and attempt whose text is sent
        self._last_attempt: tuple[int, int] | None = None  # turn and attempt of the last `llm_delta` event
        self._has_json_calls = policy.method in _JSON_METHODS and bool(tools.definitions)
        self._withholds_all = False  # True once a call in JSON may have begun, and after the turn
        self._decoder = self._build_decoder(policy, tools)

    def _build_decoder(self, policy: Policy, tools: ToolRegistry) -> formats.TextDecoder | None:
        """Return the decoder that finds the text of an answer; None if all of it is text."""
        if policy.method in _JSON_METHODS:
            return formats.TextDecoder(formats.REASONING_FORMAT, ToolSchemas())
        has_text_calls = tools.definitions and _TEXT_TRANSFORMS.intersection(policy.response_transforms)
        if policy.method == "template" or has_text_calls:
            return formats.stream(policy.text_format, [tool.to_openai() for tool in tools.definitions])
        return None

    def receive(self, event: Event) -> None:
        """Send the part of an event's text that cannot belong to a call, and withhold the rest."""
        if event.type != "llm_delta":
            return
        self._last_attempt = attempt = (event.turn, event.data.get("attempt", 1))
        text = event.data.get("text")
        if not text:
            return
        self._sent_attempt = self._sent_attempt or attempt
        if attempt != self._sent_attempt:
            return
        if self._decoder is None:
            self._send_part(text)
            return
        json_start = match.start() if self._has_json_calls and (match := _JSON_START.search(text)) else len(text)
        self._decode(self._decoder, text[:json_start])
        self._withholds_all = self._withholds_all or json_start < len(text)
        self._decode(self._decoder, text[json_start:])

    def _decode(self, decoder: formats.TextDecoder, text: str) -> None:
        """Decode the next part of an answer, and send or withhold the text that it contains."""
        has_words = False
        for part in decoder.feed(text):
            if part.kind == "void":  # all text so far was reasoning
                self._reasoning_part_count = len(self._sent_parts)
                self._withheld_parts = [blanks for blanks in self._withheld_parts if blanks.isspace()]
            elif part.kind == "text":
                self._withheld_parts.append(part.text)
                has_words = has_words or not part.text.isspace()
        if has_words and not self._withholds_all:
            withheld_text = "".join(self._withheld_parts)
            certain_text = withheld_text.rstrip()
            self._withheld_parts = [withheld_text[len(certain_text) :]]
            self._send_part(certain_text if self._sent_parts else certain_text.lstrip())

    def _send_part(self, text: str) -> None:
        self._sent_parts.append(text)
        self._send(text)

    def find_rest(self, answer: GatewayAnswer) -> str | None:
        """Find the text that still has to be sent after the turn.

        Returns:
            The rest of the final text, if the final text begins with the text that was sent. Otherwise:

            - "" for an answer with calls, if it has no text or comes from the attempt whose text was sent;
            - the withheld text for any other answer from that attempt;
            - None for any other answer, which comes from a later attempt and lacks text that the client has.
        """
        text = answer.text.lstrip()
        for part_count in (0, self._reasoning_part_count):
            sent_text = "".join(self._sent_parts[part_count:]).lstrip()
            if text.startswith(sent_text):
                return text[len(sent_text) :]
        is_same_attempt = self._last_attempt == self._sent_attempt
        if answer.calls and (is_same_attempt or not answer.text):
            return ""
        return self._take_withheld_text() if is_same_attempt else None

    def _take_withheld_text(self) -> str:
        """End the decoding and return all withheld text, also the text that the decoder still held."""
        self._withholds_all = True
        if self._decoder is not None:
            self._decoder.close()
            self._decode(self._decoder, "")
        return "".join(self._withheld_parts)


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
