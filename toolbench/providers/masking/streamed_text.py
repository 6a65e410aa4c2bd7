"""Masking of a streamed answer while it arrives.

Text that may be the beginning of a secret is held back until the next chunk decides. So a listener never receives a
whole secret, however the text is divided, and at most a secret's length is held back.
"""

from collections.abc import Iterator

from toolbench.engine.types import JsonObject
from toolbench.providers.masking.secrets import Masker

Channel = tuple[str, int | None]  # kind of text, and for arguments the index of the call

_TEXT_KINDS = ("text", "reasoning")


class StreamMasker:
    """Masker for the data of `llm_delta` events of one attempt."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held: dict[Channel, str] = {}
        self._names: dict[int | None, str] = {}

    def mask(self, data: JsonObject) -> JsonObject:
        """Return the event's data with the text that may be shown now."""
        call = data.get("call")
        if call is None:
            return {**data, **{kind: self._release((kind, None), data[kind]) for kind in _TEXT_KINDS}}
        name, _ = self._masker.split_at_secret(data["name"])
        arguments = self._release(("arguments", call), data["arguments"], final=bool(data["closed"]))
        self._names[call] = name
        return {**data, "name": name, "arguments": arguments}

    def flush(self) -> Iterator[JsonObject]:
        """Yield the text that is still held back as data of further events. Call it when the attempt is over."""
        held, self._held = self._held, {}
        for (kind, call), text in held.items():
            if kind == "arguments":
                yield {"call": call, "name": self._names[call], "arguments": text, "closed": False}
            else:
                yield {**dict.fromkeys(_TEXT_KINDS, ""), kind: text}

    def _release(self, channel: Channel, text: str, *, final: bool = False) -> str:
        if not text:
            return ""
        shown, held = self._masker.split_at_secret(self._held.pop(channel, "") + text)
        if final:
            return shown + held
        if held:
            self._held[channel] = held
        return shown
