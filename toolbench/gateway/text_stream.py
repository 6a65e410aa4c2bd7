"""The part of a streamed answer that is certainly text, for clients that must not see how calls are written."""

from collections.abc import Callable

from toolbench.engine import formats
from toolbench.engine.events import Event
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolRegistry

TEXT_TRANSFORMS = frozenset({"tool_calls_from_text", "assistant_content_tool_call_tags_to_tool_calls"})
JSON_METHODS = ("text_json", "constrained")  # their calls are bare JSON, which may begin anywhere
_JSON_STARTS = ("{", "[", "`")


class CertainText:
    """Listener of the loop's events that passes on text as soon as it cannot be part of a call.

    Text of a second attempt or of a repaired turn is not passed on, since the first one may have been shown.

    Args:
        policy: says how calls may be written in the text.
        tools: the tools of the request.
        send: receives each part.
    """

    def __init__(self, policy: Policy, tools: ToolRegistry, send: Callable[[str], None]) -> None:
        self._send = send
        self._sent: list[str] = []
        self._attempt: tuple[int, int] | None = None
        self._is_json = bool(tools.definitions) and policy.method in JSON_METHODS
        self._has_ended = False
        reads_text = policy.method == "template" or TEXT_TRANSFORMS.intersection(policy.response_transforms)
        self._decoder = (
            formats.stream(policy.text_format, [tool.to_openai() for tool in tools.definitions])
            if tools.definitions and reads_text and not self._is_json
            else None
        )

    @property
    def sent(self) -> str:
        """Return the text that was passed on."""
        return "".join(self._sent)

    def take(self, event: Event) -> None:
        """Read an event of the loop."""
        text = event.data.get("text") if event.type == "llm_delta" else None
        if not text:
            return
        attempt = (event.turn, event.data.get("attempt", 1))
        self._attempt = self._attempt or attempt
        if attempt == self._attempt:
            self._pass_on(self._find_certain(text))

    def _find_certain(self, text: str) -> str:
        if self._decoder is not None:
            return "".join(part.text for part in self._decoder.feed(text) if part.kind == "text")
        if not self._is_json or self._has_ended:
            return "" if self._has_ended else text
        starts = [at for mark in _JSON_STARTS if (at := text.find(mark)) >= 0]
        self._has_ended = bool(starts)
        return text[: min(starts, default=len(text))]

    def _pass_on(self, text: str) -> None:
        if text:
            self._sent.append(text)
            self._send(text)

    def find_rest(self, text: str) -> str:
        """Return what is left of the final text; empty if another text was shown."""
        sent = self.sent
        return text[len(sent) :] if text.startswith(sent) else ""
