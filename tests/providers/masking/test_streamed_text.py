import json

import pytest

from benchmarks.canary_answers import SPELLING_BY_NAME
from benchmarks.canary_search import CanarySearch
from tests.providers.masking.test_secrets_everywhere import KEY
from toolbench.engine.types import JsonObject
from toolbench.providers.masking.secrets import build_masker
from toolbench.providers.masking.streamed_text import StreamMasker


def _build_delta(part: str) -> JsonObject:
    return {"text": part, "reasoning": ""}


def _mask_parts(parts: list[str]) -> list[str]:
    masker = StreamMasker(build_masker(KEY, ()))
    return [data["text"] for data in (*(masker.mask(_build_delta(part)) for part in parts), *masker.flush())]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("spelling", SPELLING_BY_NAME)
def test_stream_masker_masks_a_key_in_chunks_of_any_size(spelling: str, size: int) -> None:
    text = f"So {SPELLING_BY_NAME[spelling](KEY)} is it."
    masked = _mask_parts([text[start : start + size] for start in range(0, len(text), size)])
    assert not CanarySearch([KEY]).has_canary_in_text("".join(masked))
    assert len("".join(masked)) == len(text)
    assert "".join(masked).startswith("So ")
    assert "".join(masked).endswith(" is it.")


def test_stream_masker_delays_only_what_may_begin_a_key() -> None:
    assert _mask_parts(["Rain ", "in Rome", "."]) == ["Rain ", "in Rome", "."]
    assert _mask_parts(["skill", " and s", "k", "-ill"]) == ["skill", " and ", "", "sk-ill"]


def test_stream_masker_without_a_key_delays_nothing() -> None:
    masker = StreamMasker(build_masker("", ()))
    assert [masker.mask(_build_delta(part))["text"] for part in ("R&D", "50%", "\\")] == ["R&D", "50%", "\\"]


def test_stream_masker_flush_returns_the_delayed_text() -> None:
    assert _mask_parts(["a", KEY[:5]]) == ["a", "", KEY[:5]]


def test_stream_masker_masks_arguments_of_each_call_separately() -> None:
    masker = StreamMasker(build_masker(KEY, ()))
    text = json.dumps({"a": KEY})
    chunks = [(call, text[start : start + 2]) for start in range(0, len(text), 2) for call in (0, 1)]
    masked = ["", ""]
    for call, chunk in chunks:
        closed = chunk.endswith("}")
        masked[call] += masker.mask({"call": call, "name": "n", "arguments": chunk, "closed": closed})["arguments"]
    assert masked == [json.dumps({"a": "*" * len(KEY)})] * 2
    assert not list(masker.flush())


def test_stream_masker_hides_a_growing_name_that_is_a_key() -> None:
    masker = StreamMasker(build_masker(KEY, ()))
    names = [
        masker.mask({"call": 0, "name": KEY[:start], "arguments": "", "closed": False})["name"] for start in (5, 20, 99)
    ]
    assert names == ["", "", "*" * len(KEY)]


def test_stream_masker_releases_the_whole_name_of_a_complete_call() -> None:
    masker = StreamMasker(build_masker(KEY, ()))
    deltas = [("list_tasks", "", False), ("", "{}", False), ("", "", True)]
    shown = [
        masker.mask({"call": 0, "name": name, "arguments": arguments, "closed": closed})["name"]
        for name, arguments, closed in deltas
    ]
    assert shown == ["list_task", "list_task", "list_tasks"]
    assert not list(masker.flush())


def test_stream_masker_flush_returns_the_whole_name_of_a_call() -> None:
    masker = StreamMasker(build_masker(KEY, ()))
    masker.mask({"call": 0, "name": "list_tasks", "arguments": "", "closed": False})
    assert list(masker.flush()) == [{"call": 0, "name": "list_tasks", "arguments": "", "closed": False}]
