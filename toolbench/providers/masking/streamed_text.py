"""Masking of a streamed answer while it arrives.

Text that may be the beginning of a secret is held back until more text arrives, so that a secret is masked even if its
parts arrive in several events. At most 64 bytes, and 12 for each byte of the longest secret or of its base64, are held
back.
"""

from collections.abc import Iterator

from toolbench.engine.types import JsonObject
from toolbench.providers.masking.secrets import Masker

Channel = tuple[str, int | None]  # kind of text; index of the call for arguments, otherwise None

_TEXT_KINDS = ("text", "reasoning")


class StreamMasker:
    """Masker for the data of the `llm_delta` events of one attempt."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held_texts: dict[Channel, str] = {}
        self._tool_names: dict[int | None, str] = {}  # as received, by index of the call

    def mask(self, data: JsonObject) -> JsonObject:
        """Return the event's data, its texts replaced by the masked texts that may be shown now."""
        call_index = data.get("call")
        if call_index is None:
            return {**data, **{kind: self._release_text((kind, None), data[kind]) for kind in _TEXT_KINDS}}
        channel, is_closed = ("arguments", call_index), bool(data["closed"])
        full_name = self._tool_names[call_index] = data["name"] or self._tool_names.get(call_index, "")
        name, held_name = self._masker.split_at_secret(full_name)
        arguments = self._release_text(channel, data["arguments"], is_last=is_closed)
        if is_closed:
            name += held_name
        elif held_name:
            self._held_texts.setdefault(channel, "")  # so that `flush` yields the complete name
        return {**data, "name": name, "arguments": arguments}

    def flush(self) -> Iterator[JsonObject]:
        """Yield the data of further events with the texts that are still held back. Call it after the attempt."""
        held_texts, self._held_texts = self._held_texts, {}
        for (kind, call_index), text in held_texts.items():
            if kind == "arguments":
                name = self._masker.mask_text(self._tool_names[call_index])
                yield {"call": call_index, "name": name, "arguments": text, "closed": False}
            else:
                yield {**dict.fromkeys(_TEXT_KINDS, ""), kind: text}

    def _release_text(self, channel: Channel, text: str, *, is_last: bool = False) -> str:
        if not text and not is_last:
            return ""
        shown, held = self._masker.split_at_secret(self._held_texts.pop(channel, "") + text)
        if is_last:
            return shown + held
        if held:
            self._held_texts[channel] = held
        return shown
