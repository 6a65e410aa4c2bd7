import json
from typing import Any

import pytest

from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.constraints.mask import Mask, Vocabulary
from toolbench.engine.errors import PlanError

END = 256
BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b"<end>"], end=END)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
}
GRAMMAR = compile_constraint([TOOL], "grammar", ConstraintOptions(final=False)).grammar


def tokens(mask: Mask) -> list[int]:
    bits = int.from_bytes(mask.allowed(), "little")
    return [token for token in range(BYTES.size) if bits >> token & 1]


def after(text: str) -> Mask:
    mask = Mask(BYTES, GRAMMAR)
    for byte in text.encode():
        mask.consume(byte)
    return mask


def test_mask_allows_only_valid_next_tokens() -> None:
    assert tokens(after("")) == [ord("{")]
    assert tokens(after('{"name":"f","arguments":{"a":')) == [*b"-0123456789"]
    assert set(tokens(after('{"name":"f","arguments":{"a":1'))) == {*b"0123456789}"}


def test_mask_of_complete_answer_allows_only_the_end() -> None:
    mask = after(json.dumps({"name": "f", "arguments": {"a": 12}}, separators=(",", ":")))
    assert tokens(mask) == [END]
    assert mask.stopped
    mask.consume(END)
    assert mask.stopped
    assert tokens(mask) == [END]
    with pytest.raises(ValueError, match="not allowed"):
        mask.consume(END)


@pytest.mark.parametrize("token", [ord("["), END, -1, 999])
def test_consume_refuses_other_token_and_keeps_mask(token: int) -> None:
    mask = after('{"name":"f","arguments":{"a":')
    with pytest.raises(ValueError, match=str(token)):
        mask.consume(token)
    assert tokens(mask) == [*b"-0123456789"]
    assert not mask.stopped


def test_invalid_grammar_or_vocabulary_raises_plan_error() -> None:
    with pytest.raises(PlanError, match="llguidance gave up"):
        Mask(BYTES, "start: nowhere")
    with pytest.raises(PlanError, match="2 tokens"):
        Vocabulary([b"a", b"b"], end=2)


def test_mask_uses_given_tokenizer() -> None:
    asked: list[bytes] = []

    def tokenize(text: bytes) -> list[int]:
        asked.append(text)
        return list(text)

    own = Vocabulary([bytes([byte]) for byte in range(256)], end=0, tokenize=tokenize)
    Mask(own, GRAMMAR).allowed()
    assert b'{"name":"f","arguments":{"a":' in asked
