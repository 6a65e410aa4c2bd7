"""Reader of the vocabulary in a GGUF file, for token masks that Toolbench computes itself.

Only the file's header is read, never the weights.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from toolbench.engine.constraints.mask import Vocabulary
from toolbench.providers.llama.weights import GGUF_MAGIC

_NUMBER_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT_TYPE, _LIST_TYPE = 8, 9
_CONTROL_TOKEN, _UNUSED_TOKEN = 3, 5  # token types without text


def read_vocabulary(path: Path) -> Vocabulary:
    """Return the vocabulary of a GGUF file.

    Raises:
        ValueError: the file is no GGUF file, or its tokens are not written in byte-level BPE.
    """
    facts = _read_header(path)
    if facts.get("tokenizer.ggml.model") != "gpt2":
        raise ValueError(f"{path.name} has no vocabulary in byte-level BPE")
    kinds = facts["tokenizer.ggml.token_type"]
    spelled = _build_byte_table()
    special = [place for place, kind in enumerate(kinds) if kind in (_CONTROL_TOKEN, _UNUSED_TOKEN)]
    hidden = set(special)
    tokens = [
        token.encode() if place in hidden else b"".join(spelled.get(char, char.encode()) for char in token)
        for place, token in enumerate(facts["tokenizer.ggml.tokens"])
    ]
    return Vocabulary(tokens, end=facts["tokenizer.ggml.eos_token_id"], special=special)


def _read_header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        if file.read(4) != GGUF_MAGIC:
            raise ValueError(f"{path.name} is not a GGUF file")
        _, _, count = struct.unpack("<IQQ", file.read(20))
        return dict(_read_metadata(file, count))


def _read_metadata(file: BinaryIO, count: int) -> Iterator[tuple[str, Any]]:
    for _ in range(count):
        name = _read_text(file)
        (kind,) = struct.unpack("<I", file.read(4))
        yield name, _read_value(file, kind)


def _read_value(file: BinaryIO, kind: int) -> Any:
    if kind == _TEXT_TYPE:
        return _read_text(file)
    if kind == _LIST_TYPE:
        inner, count = struct.unpack("<IQ", file.read(12))
        if inner in _NUMBER_FORMATS:
            size = struct.calcsize(f"<{_NUMBER_FORMATS[inner]}")
            return struct.unpack(f"<{count}{_NUMBER_FORMATS[inner]}", file.read(count * size))
        return [_read_value(file, inner) for _ in range(count)]
    shape = f"<{_NUMBER_FORMATS[kind]}"
    return struct.unpack(shape, file.read(struct.calcsize(shape)))[0]


def _read_text(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", file.read(8))
    return file.read(length).decode("utf-8", "replace")


def _build_byte_table() -> dict[str, bytes]:
    """Return the byte for each character with which byte-level BPE writes a byte.

    A byte that is a visible character is written as that character, the others as characters from U+0100 on.
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    table = {chr(byte): bytes([byte]) for byte in visible}
    return table | {chr(0x100 + place): bytes([byte]) for place, byte in enumerate(hidden)}
