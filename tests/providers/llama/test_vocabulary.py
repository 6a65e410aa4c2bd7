"""Tests of the local model's vocabulary: no weights are read and no request is sent."""

import json
import struct
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy
import pytest

from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.constraints.mask import Mask, Vocabulary
from toolbench.engine.constraints.schema_support import SizeLimits
from toolbench.providers.llama.vocabulary import read_vocabulary
from toolbench.providers.llama.weights import find_weights

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 5},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$", "maxLength": 6},
        "tree": {"$ref": "#/$defs/node"},
    },
    "required": ["city", "days"],
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 1}},
            "required": ["kids"],
        }
    },
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in ("book", "cancel")]
OPTIONS = ConstraintOptions(allows_final=False, max_calls=2, limits=SizeLimits(5, 2))
GRAMMAR = compile_constraint(TOOLS, "grammar", OPTIONS).grammar
MAX_TOKENS = 400


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return read_vocabulary(find_weights(""))


def sample_answer(vocabulary: Vocabulary, seed: int) -> str:
    """Return an answer sampled under the mask with random logits."""
    mask, generator = Mask(vocabulary, GRAMMAR), numpy.random.default_rng(seed)
    answer: list[int] = []
    while not mask.stopped and len(answer) < MAX_TOKENS:
        mask_bytes = numpy.frombuffer(mask.allowed(), numpy.uint8)
        allowed = numpy.unpackbits(mask_bytes, bitorder="little")[: vocabulary.token_count]
        logits = numpy.where(allowed, generator.random(vocabulary.token_count), -1.0)
        answer.append(int(logits.argmax()))
        mask.consume(answer[-1])
    return vocabulary.tokenizer.decode_bytes([token for token in answer if token != vocabulary.end]).decode()


def test_mask_of_the_models_vocabulary_allows_only_valid_calls(vocabulary: Vocabulary) -> None:
    names = set()
    for seed in range(25):
        calls = json.loads(sample_answer(vocabulary, seed))["calls"]
        assert 1 <= len(calls) <= 2
        for call in calls:
            names.add(call["name"])
            assert jsonschema_rs.is_valid(PARAMETERS, call["arguments"])
    assert names == {"book", "cancel"}


def test_read_vocabulary_has_the_tokens_of_the_model(vocabulary: Vocabulary) -> None:
    assert vocabulary.token_count == 49152
    assert vocabulary.tokenizer.decode_bytes([2]) == b"<|im_end|>"
    assert vocabulary.end == 2
    text = 'Zürich: {"city": "Köln"}\n'
    assert vocabulary.tokenizer.decode_str(vocabulary.tokenizer.greedy_tokenize(text)) == text


def test_read_vocabulary_refuses_another_file(tmp_path: Path) -> None:
    other = tmp_path / "x.gguf"
    other.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="not a GGUF"):
        read_vocabulary(other)
    other.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + bytes(16))
    with pytest.raises(ValueError, match="byte-level BPE"):
        read_vocabulary(other)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"", id="nothing after the magic number"),
        pytest.param(b"\3\0\0\0" + bytes(8) + b"\2" + bytes(7), id="missing metadata"),
        pytest.param(b"\3\0\0\0" + bytes(8) + b"\1" + bytes(7) + b"\1" + bytes(7) + b"a\x63\0\0\0", id="unknown type"),
        pytest.param(b"\3\0\0\0" + bytes(8) + b"\1" + bytes(7) + b"\xff" * 8, id="length beyond the file"),
    ],
)
def test_read_vocabulary_refuses_damaged_header(tmp_path: Path, header: bytes) -> None:
    damaged = tmp_path / "x.gguf"
    damaged.write_bytes(b"GGUF" + header)
    with pytest.raises(ValueError, match=r"header of x\.gguf is damaged"):
        read_vocabulary(damaged)


def write_header(folder: Path, *entries: tuple[str, int, bytes]) -> Path:
    """Write a GGUF file of metadata only: key, type and bytes of each value."""
    path = folder / "x.gguf"
    parts = [
        struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + value for key, kind, value in entries
    ]
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(parts))
    return path


MODEL_ENTRY = ("tokenizer.ggml.model", 8, struct.pack("<Q", 4) + b"gpt2")


def test_read_vocabulary_names_missing_metadata(tmp_path: Path) -> None:
    incomplete = write_header(tmp_path, MODEL_ENTRY)
    with pytest.raises(ValueError, match=r"x\.gguf has no tokenizer\.ggml\.token_type, tokenizer\.ggml\.tokens, "):
        read_vocabulary(incomplete)


def test_read_vocabulary_refuses_values_of_a_wrong_type(tmp_path: Path) -> None:
    keys = ("tokenizer.ggml.token_type", "tokenizer.ggml.tokens", "tokenizer.ggml.eos_token_id")
    numbers = write_header(tmp_path, MODEL_ENTRY, *((key, 4, struct.pack("<I", 1)) for key in keys))
    with pytest.raises(ValueError, match=r"vocabulary in x\.gguf has a wrong type"):
        read_vocabulary(numbers)
