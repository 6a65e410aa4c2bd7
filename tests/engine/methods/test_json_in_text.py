import pytest

from toolbench.engine.methods.json_in_text import (
    MAX_CODE_CALLS,
    find_attempted_call,
    find_blocks,
    has_readable_call,
    parse_call,
)

NAMES = ("f", "g")


@pytest.mark.parametrize(
    "value", [None, 1, [], [1], {}, {"name": 1}, {"name": "other"}, {"function": {"name": "other"}}]
)
def test_parse_call_of_value_without_known_tool_returns_none(value: object) -> None:
    assert parse_call(value, NAMES) is None


def test_find_blocks_returns_position_of_the_fence() -> None:
    text = 'a\n```json\n{"x": 1}\n```\nb'
    (block,) = find_blocks(text)
    assert (text[: block.start], text[block.end :], block.value) == ("a\n", "\nb", {"x": 1})


def test_find_blocks_returns_32_blocks_at_most() -> None:
    assert len(list(find_blocks('```{"x": 1}```\n' * 100))) == 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"f" is a tool', None),
        ('[1](https://oslo.example) is what "f" says', None),
        ("f(1) or g(2)?", None),
        ("`g(1)`", "g"),
        ('g {"a": 1}', "g"),
        ('Message 2\n  g {"a": 1}\nDone.', "g"),
        ('<think>```json\n{"name": "g", "arguments": {}}\n```</think>Done.', None),
        ("", None),
    ],
)
def test_find_attempted_call_distinguishes_calls_from_mentions(text: str, expected: str | None) -> None:
    assert find_attempted_call(text, NAMES) == expected


@pytest.mark.parametrize(
    ("text", "is_readable"),
    [
        ('<tool_call>{"name": "f", "arguments": {}}</tool_call>', True),
        ('So:\n```json\n{"tool": "f", "arguments": {}}\n```\nDone.', True),
        ("```python\nf()\n```", True),
        ("[f('a', 1)]", True),
        ('f {"a": 1}', True),
        ("[f(), h(a=1)]", True),
        ("<|python_start|>[f(), g(a='", True),
        ("[f(a=1", False),
        ("[f(a=g())]", False),
        ('f {"a": one}', False),
        ('{"name": "f", "arguments": {"a": "b', False),
        ('<tool_call>{"name": "f", "arguments": {"a": "b', False),
        ('```json\n{"name": "f", "arguments": {oops}}\n```', False),
        ('{"name": "other", "arguments": {}}', False),
        ("f is a tool", False),
    ],
)
def test_has_readable_call_distinguishes_complete_and_damaged_calls(text: str, is_readable: bool) -> None:
    assert has_readable_call(text, (*NAMES, "h")) is is_readable


def test_has_readable_call_reads_max_code_calls_at_most() -> None:
    damaged = "f(a=g())\n"
    assert has_readable_call(damaged * (MAX_CODE_CALLS - 2) + "f()", NAMES)
    assert not has_readable_call(damaged * MAX_CODE_CALLS + "f()", NAMES)
