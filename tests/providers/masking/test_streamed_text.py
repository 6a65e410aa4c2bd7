import json

import pytest

from benchmarks.canary_answers import SPELLING_BY_NAME
from benchmarks.canary_search import CanarySearch
from tests.providers.masking.test_secrets_everywhere import KEY
from toolbench.engine.types import JsonObject
from toolbench.providers.masking.secrets import build_masker
from toolbench.providers.masking.streamed_text import StreamMasker


def _text(part: str) -> JsonObject:
    return {"text": part, "reasoning": ""}


def _heard(parts: list[str]) -> list[str]:
    live = StreamMasker(build_masker(KEY, ()))
    return [data["text"] for data in (*(live.mask(_text(part)) for part in parts), *live.flush())]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("spelling", SPELLING_BY_NAME)
def test_no_listener_hears_a_key_in_whatever_pieces(spelling: str, size: int) -> None:
    said = f"So {SPELLING_BY_NAME[spelling](KEY)} is it."
    heard = _heard([said[at : at + size] for at in range(0, len(said), size)])
    assert not CanarySearch([KEY]).has_canary_in_text("".join(heard))
    assert len("".join(heard)) == len(said)
    assert "".join(heard).startswith("So ")
    assert "".join(heard).endswith(" is it.")


def test_only_what_may_begin_a_key_waits() -> None:
    assert _heard(["Rain ", "in Rome", "."]) == ["Rain ", "in Rome", "."]
    assert _heard(["skill", " and s", "k", "-ill"]) == ["skill", " and ", "", "sk-ill"]


def test_nothing_waits_where_no_key_is_known() -> None:
    live = StreamMasker(build_masker("", ()))
    assert [live.mask(_text(part))["text"] for part in ("R&D", "50%", "\\")] == ["R&D", "50%", "\\"]


def test_what_was_held_back_comes_when_the_answer_is_over() -> None:
    assert _heard(["a", KEY[:5]]) == ["a", "", KEY[:5]]


def test_the_arguments_of_each_call_are_watched_on_their_own() -> None:
    live = StreamMasker(build_masker(KEY, ()))
    written = json.dumps({"a": KEY})
    pieces = [(call, written[at : at + 2]) for at in range(0, len(written), 2) for call in (0, 1)]
    heard = ["", ""]
    for call, piece in pieces:
        closed = piece.endswith("}")
        heard[call] += live.mask({"call": call, "name": "n", "arguments": piece, "closed": closed})["arguments"]
    assert heard == [json.dumps({"a": "*" * len(KEY)})] * 2
    assert not list(live.flush())


def test_a_name_that_is_a_key_is_not_shown_while_it_grows() -> None:
    live = StreamMasker(build_masker(KEY, ()))
    names = [live.mask({"call": 0, "name": KEY[:at], "arguments": "", "closed": False})["name"] for at in (5, 20, 99)]
    assert names == ["", "", "*" * len(KEY)]
