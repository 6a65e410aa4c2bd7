import pytest

from toolbench.engine.wire_formats.merge_chunks import merge_chunks


@pytest.mark.parametrize(
    ("chunks", "key", "value"),
    [
        ([], "", None),
        ([None, {"a": 1}, None], "", {"a": 1}),
        (["th", "ink"], "thinking", "think"),
        (["a", "a"], "text", "aa"),
        (["sig", "sig"], "signature", "sig"),
        (["si", "g"], "signature", "sig"),
        (["function", "", "other"], "type", "other"),
        ([1, 2], "", 2),
        ([{"a": {"b": "x"}}, {"a": {"c": 1}}], "", {"a": {"b": "x", "c": 1}}),
        ([[1], [1]], "", [1, 1]),
        (
            [[{"index": 0, "type": "t", "text": "a"}], [{"index": 0, "type": "t", "text": "b"}, {"index": 1}]],
            "",
            [{"index": 0, "type": "t", "text": "ab"}, {"index": 1}],
        ),
    ],
)
def test_merge_chunks_returns_one_value(chunks: list[object], key: str, value: object) -> None:
    assert merge_chunks(chunks, key) == value
