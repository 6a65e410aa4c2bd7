"""Reader of the vocabulary in the header of a GGUF file, for token masks that Toolbench computes."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from toolbench.engine.constraints.mask import Vocabulary
from toolbench.providers.llama.weights import GGUF_MAGIC

# Formats of `struct` by the type of a value in GGUF metadata.
_NUMBER_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT_TYPE, _LIST_TYPE = 8, 9
_SPECIAL_TOKEN_TYPES = (3, 5)  # control tokens and unused tokens
# Keys of the metadata: the types of the tokens, the tokens, and the id of the token that ends an answer.
_TYPES_KEY, _TOKENS_KEY = "tokenizer.ggml.token_type", "tokenizer.ggml.tokens"
_END_KEY = "tokenizer.ggml.eos_token_id"


def read_vocabulary(path: Path) -> Vocabulary:
    """Return the vocabulary of a GGUF file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a GGUF file, its header is damaged or incomplete, its tokens are not written in
            byte-level BPE, or a value of the vocabulary has a wrong type.
        PlanError: the token that ends an answer is not in the vocabulary.
    """
    metadata = _read_header(path)
    if metadata.get("tokenizer.ggml.model") != "gpt2":
        raise ValueError(f"{path.name} has no vocabulary in byte-level BPE")
    if missing_keys := [key for key in (_TYPES_KEY, _TOKENS_KEY, _END_KEY) if key not in metadata]:
        raise ValueError(f"{path.name} has no {', '.join(missing_keys)}")
    token_types, texts, end = (metadata[key] for key in (_TYPES_KEY, _TOKENS_KEY, _END_KEY))
    has_texts = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    if not has_texts or not isinstance(token_types, tuple) or not isinstance(end, int):
        raise ValueError(f"a value of the vocabulary in {path.name} has a wrong type")
    bytes_by_char = _build_byte_table()
    special_ids = [token_id for token_id, token_type in enumerate(token_types) if token_type in _SPECIAL_TOKEN_TYPES]
    special_id_set = set(special_ids)
    tokens = [
        text.encode()
        if token_id in special_id_set
        else b"".join(bytes_by_char.get(char, char.encode()) for char in text)
        for token_id, text in enumerate(texts)
    ]
    return Vocabulary(tokens, end=end, special=special_ids)


def _read_header(path: Path) -> dict[str, Any]:
    """Return the metadata in the file's header.

    Raises:
        ValueError: the file is not a GGUF file, or its header is damaged or incomplete.
    """
    with path.open("rb") as file:
        if file.read(4) != GGUF_MAGIC:
            raise ValueError(f"{path.name} is not a GGUF file")
        try:
            _, _, count = struct.unpack("<IQQ", file.read(20))
            return dict(_read_metadata(file, count))
        except (struct.error, KeyError, OverflowError, MemoryError, RecursionError):
            raise ValueError(f"the header of {path.name} is damaged or incomplete") from None


def _read_metadata(file: BinaryIO, count: int) -> Iterator[tuple[str, Any]]:
    for _ in range(count):
        name = _read_text(file)
        (value_type,) = struct.unpack("<I", file.read(4))
        yield name, _read_value(file, value_type)


def _read_value(file: BinaryIO, value_type: int) -> Any:
    if value_type == _TEXT_TYPE:
        return _read_text(file)
    if value_type == _LIST_TYPE:
        item_type, count = struct.unpack("<IQ", file.read(12))
        if item_type in _NUMBER_FORMATS:
            number_format = f"<{count}{_NUMBER_FORMATS[item_type]}"
            return struct.unpack(number_format, file.read(struct.calcsize(number_format)))
        return [_read_value(file, item_type) for _ in range(count)]
    number_format = f"<{_NUMBER_FORMATS[value_type]}"
    return struct.unpack(number_format, file.read(struct.calcsize(number_format)))[0]


def _read_text(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", file.read(8))
    return file.read(length).decode("utf-8", "replace")


def _build_byte_table() -> dict[str, bytes]:
    """Return the byte that each character stands for in byte-level BPE.

    A byte that is a visible character in Latin-1 is written as that character. The other bytes are written as
    characters from U+0100 on.
    """
    visible_bytes = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other_bytes = [byte for byte in range(256) if byte not in visible_bytes]
    table = {chr(byte): bytes([byte]) for byte in visible_bytes}
    return table | {chr(0x100 + index): bytes([byte]) for index, byte in enumerate(other_bytes)}
