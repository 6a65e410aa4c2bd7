import pytest

from toolbench.engine.methods.text_json import TextJsonMethod
from toolbench.engine.repairs import REPAIR_NAMES
from toolbench.engine.tools.definitions import ToolDefinition

TOOLS = (ToolDefinition("f", "F."), ToolDefinition("g", "G."))
CALL = '{"name": "f", "arguments": {"a": "```x```"}}'


def parse_text(text: str) -> tuple[list[tuple[str, str, str]], str, list[str], bool]:
    parsed = TextJsonMethod().parse_answer({"role": "assistant", "content": text}, TOOLS)
    calls = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in parsed.calls]
    assert parsed.method_used == ("json_fallback" if calls else "text")
    return calls, parsed.text, [f.code for f in parsed.findings], parsed.has_unexecuted_call


THE_CALL = [("text_call_1", "f", '{"a":"```x```"}')]


@pytest.mark.parametrize(
    ("text", "rest", "findings"),
    [
        (f"```json\n{CALL}\n```", "", []),
        (f"```\n{CALL}\n```\n", "", []),
        (f"  ```JSON {CALL}```", "", []),
        (f"Let me see.\n```json\n{CALL}\n```\nThere.", "Let me see.\n\nThere.", ["prose_around_call"]),
        (f"[1](https://oslo.example):\n```json\n{CALL}\n```", "[1](https://oslo.example):", ["prose_around_call"]),
        (CALL, "", ["fence_missing"]),
        (f"```json\n{CALL}", "", ["fence_missing"]),
        (
            f"```json\n{CALL}\n```\n```json\n{CALL}\n```",
            f"```json\n{CALL}\n```",
            ["calls_ignored", "prose_around_call"],
        ),
        (f'```json\n{{"x": 1}}\n```\n```json\n{CALL}\n```', '```json\n{"x": 1}\n```', ["prose_around_call"]),
    ],
)
def test_text_json_reads_first_block_that_names_a_known_tool(text: str, rest: str, findings: list[str]) -> None:
    assert parse_text(text) == (THE_CALL, rest, findings, False)


@pytest.mark.parametrize(
    "shape",
    [
        '{"name": "f", "parameters": {"a": 1}}',
        '{"tool": "f", "args": {"a": 1}}',
        '{"function": {"name": "f", "arguments": {"a": 1}}}',
    ],
)
def test_text_json_reads_other_call_shape_and_reports_it(shape: str) -> None:
    assert parse_text(f"```json\n{shape}\n```") == ([("text_call_1", "f", '{"a":1}')], "", ["call_shape"], False)


def test_text_json_missing_arguments_are_an_empty_object() -> None:
    assert parse_text('```json\n{"name": "f"}\n```')[0] == [("text_call_1", "f", "{}")]


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "f", "arguments": {"a": \n```',
        '```json\n{"name": "f", "argum',
        '{"name": "f", "arguments": {"a": "unfin',
        '```json\n{"name": "unknown", "arguments": {}}\n```',
        "```json\n" + '{"a":' * 100_000 + "\n```",
        '[{"name": "unknown", "arg',
        "```json\n[\n",
        '<tool_call>{"name": "f"}</tool_call>',
    ],
)
def test_text_json_reports_unreadable_call_without_executing_it(text: str) -> None:
    assert parse_text(text) == ([], text, ["parse_error"], True)


def test_text_json_finding_quotes_less_than_300_characters() -> None:
    (finding,) = TextJsonMethod().parse_answer({"content": "```json\n{" + "x" * 10_000}, TOOLS).findings
    assert len(finding.message) < 300


@pytest.mark.parametrize(
    "text",
    [
        "Done.",
        "",
        "```python\nprint({})\n```",
        '```json\n{"result": 4}\n```',
        "[Oslo](https://oslo.example) is cold.",
        "So:\n```python\n[city for city in cities]\n```",
    ],
)
def test_text_json_treats_other_text_as_answer(text: str) -> None:
    assert parse_text(text) == ([], text, [], False)


def test_text_json_joins_content_parts() -> None:
    parts = [{"type": "text", "text": "```json\n"}, {"type": "image_url"}, {"type": "text", "text": f"{CALL}\n```"}]
    assert len(TextJsonMethod().parse_answer({"content": parts}, TOOLS).calls) == 1


def test_text_json_reads_100000_fences_without_a_call() -> None:
    assert parse_text('```{"a' * 100_000)[0] == []


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"好的，我来查：{CALL} 请稍等。", "好的，我来查： 请稍等。"),
        (f"I think.\n{CALL}", "I think."),
        (f'{{"x": 1}} {CALL}', '{"x": 1}'),
        (f'The character "{{" starts it: {CALL}', 'The character "{" starts it:'),
    ],
)
def test_text_json_reads_object_between_words_if_no_fence_has_a_call(text: str, rest: str) -> None:
    assert parse_text(text) == (THE_CALL, rest, ["fence_missing", "prose_around_call"], False)


@pytest.mark.parametrize(
    ("text", "repairs", "rest"),
    [
        ("```json\n{'name': 'f', 'arguments': {'a': 1,}}\n```", ("single_quotes", "trailing_commas"), ""),
        ('Now.\n```json\n{"name": "f", "arguments": {"a": 1}\n```', ("missing_closers",), "Now."),
        ("```json\n调用：{“name”: “f”, “arguments”: {“a”: 1}}\n```", ("text_around_object", "smart_quotes"), ""),
    ],
)
def test_text_json_repairs_block_only_if_repairs_are_set(text: str, repairs: tuple[str, ...], rest: str) -> None:
    assert parse_text(text)[0] == []
    parsed = TextJsonMethod(REPAIR_NAMES).parse_answer({"content": text}, TOOLS)
    assert [(c["function"]["name"], c["function"]["arguments"]) for c in parsed.calls] == [("f", '{"a":1}')]
    assert (parsed.method_used, parsed.text, parsed.has_unexecuted_call) == ("json_fallback", rest, False)
    assert [change.name for change in parsed.changes] == list(repairs)
    assert [error.repairs for error in parsed.parse_errors] == [repairs]


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "f", "arguments": {"a": "北',
        '{"name": "f", "arguments": {"a": "x"',
        '```json\n{"name": "f", "arguments": {"a": "x"}',
    ],
)
def test_text_json_repairs_no_truncated_call(text: str) -> None:
    parsed = TextJsonMethod(REPAIR_NAMES).parse_answer({"content": text}, TOOLS)
    assert (parsed.calls, parsed.text, parsed.method_used, parsed.has_unexecuted_call) == ((), text, "text", True)
    assert [finding.code for finding in parsed.findings] == ["parse_error", "arguments_truncated"]
    assert parsed.parse_errors[0].truncated


def test_text_json_does_not_repair_a_call_that_needs_no_repair() -> None:
    text = '{"name": "f", "arguments": {"a": "<tool_call>"}}\n```'
    parsed = TextJsonMethod(REPAIR_NAMES).parse_answer({"content": text}, TOOLS)
    assert ([finding.code for finding in parsed.findings], parsed.parse_errors) == (["parse_error"], ())


def test_text_json_ignores_call_in_closed_reasoning() -> None:
    drafted = '```json\n{"name": "g", "arguments": {}}\n```'
    thinking = f"<think>Perhaps {drafted}</think>\n"
    assert parse_text(f"{thinking}```json\n{CALL}\n```") == (THE_CALL, "", [], False)
    assert parse_text(f"Perhaps {drafted}</think>Done.") == ([], "Done.", [], False)
    assert parse_text(f"<think>Perhaps {drafted}")[0]  # never closed: the call ends it

    parsed = TextJsonMethod().parse_answer(
        {"role": "assistant", "content": f"{thinking}Done.", "reasoning_content": "Hm."}, TOOLS
    )
    assert parsed.message == {"role": "assistant", "content": "Done.", "reasoning_content": f"Hm.\nPerhaps {drafted}"}


def test_text_json_reports_ignored_calls_of_a_list() -> None:
    assert parse_text(f"```json\n[{CALL}, {CALL}]\n```") == (THE_CALL, "", ["calls_ignored"], False)
