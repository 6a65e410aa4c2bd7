import pytest

from toolbench.engine.transforms.tool_call_tags import extract_tagged_calls


def list_calls(content: str) -> list[tuple[str, str, str]]:
    _, calls = extract_tagged_calls(content)
    return [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]


@pytest.mark.parametrize(
    ("payload", "arguments"),
    [
        ('{"name": "a.b-c_1", "arguments": {"x": 1}}', '{"x":1}'),
        ('{"name": "a.b-c_1", "args": {"x": 1}}', '{"x":1}'),
        ('{"function": {"name": "a.b-c_1", "arguments": {"x": 1}}}', '{"x":1}'),
        ('{"name": "a.b-c_1", "arguments": "{\\"x\\":1}"}', '{"x":1}'),
        ('a.b-c_1 {"x": 1}', '{"x":1}'),
        ('a.b-c_1\n{"x": 1}', '{"x":1}'),
        ("a.b-c_1", "{}"),
        ("\n a.b-c_1 \n", "{}"),
        ('{"name": "a.b-c_1"}', "{}"),
        ('{"name": "a.b-c_1", "arguments": 7}', "{}"),
        ('{"name": "a.b-c_1", "arguments": [1]}', "{}"),
        ('{"name": "a.b-c_1", "arguments": null}', "{}"),
        ('{"name": "a.b-c_1", "arguments": " "}', "{}"),
    ],
)
def test_tag_payload_is_read_in_every_syntax(payload: str, arguments: str) -> None:
    assert list_calls(f"<tool_call>{payload}</tool_call>") == [("tag_call_1", "a.b-c_1", arguments)]


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "two words",
        "{",
        '{"name": "bad name"}',
        '{"name": 5}',
        "[]",
        'f {"x": ',
        "f [1]",
        '{"a": NaN, "name": "f"}',
        "{" * 5000,
    ],
)
def test_unreadable_payload_is_skipped_and_leaves_a_gap_in_ids(payload: str) -> None:
    assert list_calls(f"<tool_call>{payload}</tool_call>") == []
    assert list_calls(f"<tool_call>{payload}</tool_call><tool_call>g</tool_call>") == [("tag_call_2", "g", "{}")]


def test_text_around_tags_is_kept_and_trimmed() -> None:
    text, calls = extract_tagged_calls(" a <tool_call>f</tool_call> b <tool_call>??</tool_call>")
    assert (text, len(calls)) == ("a  b", 1)


def test_text_without_readable_tag_is_unchanged() -> None:
    assert extract_tagged_calls(" <tool_call>??</tool_call> ") == (" <tool_call>??</tool_call> ", [])


@pytest.mark.parametrize(
    "quoted",
    [
        "```\n<tool_call>f</tool_call>\n```",
        "```xml\n<tool_call>f</tool_call>\n```",
        "````\n```\n<tool_call>f</tool_call>\n````",
        "Write `<tool_call>f</tool_call>` so.",
        "Write ``<tool_call>`f`</tool_call>`` so.",
        "Write \\<tool_call>f</tool_call> so.",
        "Cut off: ```\n<tool_call>f</tool_call>",
    ],
)
def test_quoted_tags_are_not_calls(quoted: str) -> None:
    assert extract_tagged_calls(quoted) == (quoted, [])


@pytest.mark.parametrize(
    "text",
    ["a ` b\n<tool_call>f</tool_call>", "`x` <tool_call>f</tool_call> `y`", "```\ncode\n```\n<tool_call>f</tool_call>"],
)
def test_code_next_to_a_tag_does_not_quote_it(text: str) -> None:
    assert [name for _, name, _ in list_calls(text)] == ["f"]


def test_backticks_inside_payload_do_not_quote_tags() -> None:
    calls = list_calls('<tool_call>{"name": "f", "arguments": {"code": "```a` b"}}</tool_call><tool_call>g</tool_call>')
    assert [name for _, name, _ in calls] == ["f", "g"]


def test_unclosed_tag_is_text() -> None:
    assert extract_tagged_calls('<tool_call>{"name": "f"}') == ('<tool_call>{"name": "f"}', [])


def test_200000_unclosed_tags_are_returned_as_text() -> None:
    text = "<tool_call>" * 200_000
    assert extract_tagged_calls(text) == (text, [])


@pytest.mark.parametrize("payload", ["...", "--", "_", '{"name": "..."}', "... {}"])
def test_name_without_letter_or_digit_is_no_call(payload: str) -> None:
    assert list_calls(f"<tool_call>{payload}</tool_call>") == []


@pytest.mark.parametrize(
    ("text", "call_count"),
    [
        ("Write <tool_call>name</tool_call> so.", 0),
        ('Write <tool_call>{"name": "g"}</tool_call> so.', 1),
        ("So:\n<tool_call>name</tool_call>", 0),
        ("<tool_call>name</tool_call>", 1),
        ('Let me look. <tool_call>{"name":"list_order","arguments":{}}</tool_call>', 1),
        ("Let me look. <tool_call>list_order {}</tool_call>", 1),
        ("Now <tool_call>f</tool_call> runs.", 1),
    ],
)
def test_bare_name_in_tag_within_text_is_a_call_only_if_offered(text: str, call_count: int) -> None:
    remaining_text, calls = extract_tagged_calls(text, ["f"])

    assert len(calls) == call_count
    assert call_count or remaining_text == text
