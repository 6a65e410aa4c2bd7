"""Tests of the texts of a body: the fast search for split secrets and the extraction join the same texts."""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.engine.types import JsonObject
from toolbench.providers.masking import body_texts
from toolbench.providers.masking.body_format import read_label
from toolbench.providers.masking.body_texts import extract_texts
from toolbench.providers.masking.secrets import build_masker
from toolbench.providers.masking.split_texts import join_split_texts

KEY = "sk-canary-0123456789"
PARTS = tuple(KEY[start : start + 5] for start in range(0, len(KEY), 5))
MISSING = object()
# Values of a label field in the events of two items; only numbers and texts tell the items apart.
LABEL_VALUES = {
    "missing": (MISSING, MISSING),
    "null": (None, None),
    "true and false": (True, False),
    "objects": ({"n": 1}, {"n": 2}),
    "int": (0, 1),
    "float": (0.5, 1e3),
    "text": ("first", "second"),
}
PLACES: dict[str, Callable[[JsonObject], object]] = {
    "root": lambda item: item,
    "nested object": lambda item: {"outer": item},
    "list item": lambda item: {"outer": [item]},
    "item of a list in a list": lambda item: {"outer": [[item]]},
    "item of a list at the root": lambda item: [item],
}


def _build_stream(events: Iterable[object]) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


def _build_interleaved_items(kinds: Iterable[str], place: Callable[[JsonObject], object]) -> bytes:
    """Build the events of two items, the first with the parts of the key; they have label fields of these kinds."""
    names_and_values = list(zip(("index", "output_index", "id"), kinds, strict=True))
    events = []
    for part in PARTS:
        for position, text in enumerate((part, "other")):
            fields = {name: LABEL_VALUES[kind][position] for name, kind in names_and_values}
            events.append(place({name: value for name, value in fields.items() if value is not MISSING} | {"t": text}))
    return _build_stream(events)


def _iter_joined_groups(body: bytes) -> Iterator[bytes]:
    """Yield the groups of texts with more than one part that `extract_texts` joins."""
    texts = extract_texts(body)
    parts, end, group = 0, 0, b""
    for start, (body_start, body_end) in zip(texts.part_starts, texts.part_spans, strict=True):
        if start > end:
            if parts > 1:
                yield group
            parts, group = 0, b""
        parts, end, group = parts + 1, start + body_end - body_start, group + body[body_start:body_end]
    if parts > 1:
        yield group


def _check_same_groups(body: bytes) -> None:
    joined = join_split_texts(body)
    assert joined is not None
    assert set(joined.split(b"\n")) - {b""} == set(_iter_joined_groups(body)) - {b""}, body


@pytest.mark.parametrize("place", PLACES)
def test_mask_body_masks_a_split_key_in_items_with_any_labels(place: str) -> None:
    masker = build_masker(KEY, ())
    for kinds in itertools.product(LABEL_VALUES, repeat=3):
        body = _build_interleaved_items(kinds, PLACES[place])
        _check_same_groups(body)
        labels = kinds if "list" in place else kinds[:2]
        is_masked = not any(part.encode() in masker.mask_body(body) for part in PARTS)
        assert is_masked == any(kind in ("int", "float", "text") for kind in labels), kinds


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", ["0", "-0", "1.50", "1E2", "1e999", "18446744073709551616"])
def test_join_split_texts_compares_numbers_by_their_value(number: str, place: str) -> None:
    body = _build_interleaved_items(("int", "missing", "missing"), PLACES[place])
    _check_same_groups(body.replace(b'"index": 0', f'"index": {number}'.encode()))


NAMES = st.sampled_from(["index", "output_index", "id", "a", "b", "", "n" * 500])
LEAVES = st.sampled_from([None, True, 0, 1, 0.0, 1.5, -1e20, "", "0", "1", "x", "yz", "w" * 500])
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda values: st.lists(values, max_size=4) | st.dictionaries(NAMES, values, max_size=4), max_leaves=12
)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_join_split_texts_joins_the_same_texts_as_extract_texts(events: list[Any]) -> None:
    _check_same_groups(_build_stream(events))
    _check_same_groups(json.dumps({"a": events}).encode())


@pytest.mark.parametrize("events", [1, 3])
@pytest.mark.parametrize(("before", "after"), [('{"a":', "}"), ("[", "]"), ('[{"a":', "}]")])
def test_join_split_texts_returns_none_over_128_levels(before: str, after: str, events: int) -> None:
    count = 128 // len(after)
    body = f'data: {before * count}"x"{after * count}\n'.encode() * events
    _check_same_groups(body)
    too_deep = f'data: [{before * count}"x"{after * count}]\n'.encode() * events
    assert join_split_texts(too_deep) is None


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": 1, "a": 2}', '{"a": NaN}', '{"a"'])
def test_join_split_texts_of_what_is_no_json_returns_none(text: str) -> None:
    assert join_split_texts(text.encode()) is None


def test_join_split_texts_of_plain_text_joins_no_quoted_texts() -> None:
    body = b'"sk-canary-" plain "0123456789"'
    assert join_split_texts(body) == b""
    assert list(_iter_joined_groups(body)) == [KEY.encode()] * 2


def test_extract_texts_reads_label_of_each_container_once(monkeypatch: pytest.MonkeyPatch) -> None:
    labels: list[str] = []

    def read_and_note(fields: JsonObject, *, is_item: bool) -> str:
        labels.append(read_label(fields, is_item=is_item))
        return labels[-1]

    monkeypatch.setattr(body_texts, "read_label", read_and_note)
    body = b'{"a":' * 100 + b"[" + b",".join([b'{"t":"x"}'] * 50) + b"]" + b"}" * 100
    assert b"x" * 50 in extract_texts(body).joined
    assert len(labels) == 150
