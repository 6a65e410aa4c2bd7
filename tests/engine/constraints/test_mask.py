import json
from typing import Any

import pytest

from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.constraints.mask import Mask, Vocabulary
from toolbench.engine.errors import PlanError

END = 256
BYTE_VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b"<end>"], end=END)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
}
GRAMMAR = compile_constraint([TOOL], "grammar", ConstraintOptions(allows_final=False)).grammar


def list_allowed_tokens(mask: Mask) -> list[int]:
    bits = int.from_bytes(mask.allowed(), "little")
    return [token for token in range(BYTE_VOCABULARY.token_count) if bits >> token & 1]


def build_mask_after(text: str) -> Mask:
    mask = Mask(BYTE_VOCABULARY, GRAMMAR)
    for byte in text.encode():
        mask.consume(byte)
    return mask


def test_mask_allows_only_valid_next_tokens() -> None:
    assert list_allowed_tokens(build_mask_after("")) == [ord("{")]
    assert list_allowed_tokens(build_mask_after('{"name":"f","arguments":{"a":')) == [*b"-0123456789"]
    assert set(list_allowed_tokens(build_mask_after('{"name":"f","arguments":{"a":1'))) == {*b"0123456789}"}


def test_mask_of_complete_answer_allows_only_the_end() -> None:
    mask = build_mask_after(json.dumps({"name": "f", "arguments": {"a": 12}}, separators=(",", ":")))
    assert list_allowed_tokens(mask) == [END]
    assert mask.stopped
    mask.consume(END)
    assert mask.stopped
    assert list_allowed_tokens(mask) == [END]
    with pytest.raises(ValueError, match="not allowed"):
        mask.consume(END)


@pytest.mark.parametrize("token", [ord("["), END, -1, 999])
def test_consume_refuses_other_token_and_keeps_mask(token: int) -> None:
    mask = build_mask_after('{"name":"f","arguments":{"a":')
    with pytest.raises(ValueError, match=str(token)):
        mask.consume(token)
    assert list_allowed_tokens(mask) == [*b"-0123456789"]
    assert not mask.stopped


def test_invalid_grammar_or_vocabulary_raises_plan_error() -> None:
    with pytest.raises(PlanError, match="llguidance cannot use the grammar"):
        Mask(BYTE_VOCABULARY, "start: nowhere")
    with pytest.raises(PlanError, match="2 tokens"):
        Vocabulary([b"a", b"b"], end=2)


def test_mask_uses_given_tokenizer() -> None:
    tokenised_texts: list[bytes] = []

    def tokenize(text: bytes) -> list[int]:
        tokenised_texts.append(text)
        return list(text)

    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)], end=0, tokenize=tokenize)
    Mask(vocabulary, GRAMMAR).allowed()
    assert b'{"name":"f","arguments":{"a":' in tokenised_texts
