import pytest

from toolbench.engine.methods.text_json import TextJsonMethod
from toolbench.engine.repairs import REPAIR_NAMES
from toolbench.engine.tools.definitions import ToolDefinition

TOOLS = (ToolDefinition("f", "F."), ToolDefinition("g", "G."))
CALL = '{"name": "f", "arguments": {"a": "```x```"}}'


def read(text: str) -> tuple[list[tuple[str, str, str]], str, list[str], bool]:
    found = TextJsonMethod().parse_answer({"role": "assistant", "content": text}, TOOLS)
    calls = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in found.calls]
    assert found.method_used == ("json_fallback" if calls else "text")
    return calls, found.text, [f.code for f in found.findings], found.has_unexecuted_call


THE_CALL = [("text_call_1", "f", '{"a":"```x```"}')]


@pytest.mark.parametrize(
    ("text", "rest", "findings"),
    [
        (f"```json\n{CALL}\n```", "", []),
        (f"```\n{CALL}\n```\n", "", []),
        (f"  ```JSON {CALL}```", "", []),
        (f"Let me see.\n```json\n{CALL}\n```\nThere.", "Let me see.\n\nThere.", ["prose_around_call"]),
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
def test_the_first_block_that_names_a_known_tool_is_the_call(text: str, rest: str, findings: list[str]) -> None:
    assert read(text) == (THE_CALL, rest, findings, False)


@pytest.mark.parametrize(
    "shape",
    [
        '{"name": "f", "parameters": {"a": 1}}',
        '{"tool": "f", "args": {"a": 1}}',
        '{"function": {"name": "f", "arguments": {"a": 1}}}',
    ],
)
def test_another_shape_is_read_and_said(shape: str) -> None:
    assert read(f"```json\n{shape}\n```") == ([("text_call_1", "f", '{"a":1}')], "", ["call_shape"], False)


def test_missing_arguments_are_an_empty_object() -> None:
    assert read('```json\n{"name": "f"}\n```')[0] == [("text_call_1", "f", "{}")]


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "f", "arguments": {"a": \n```',
        '```json\n{"name": "f", "argum',
        '{"name": "f", "arguments": {"a": "unfin',
        '```json\n{"name": "unknown", "arguments": {}}\n```',
        "```json\n" + '{"a":' * 100_000 + "\n```",
        '<tool_call>{"name": "f"}</tool_call>',
    ],
)
def test_a_call_that_cannot_be_read_is_reported_and_never_runs(text: str) -> None:
    assert read(text) == ([], text, ["parse_error"], True)


def test_what_a_finding_quotes_is_bounded() -> None:
    (finding,) = TextJsonMethod().parse_answer({"content": "```json\n{" + "x" * 10_000}, TOOLS).findings
    assert len(finding.message) < 300


@pytest.mark.parametrize("text", ["Done.", "", "```python\nprint({})\n```", '```json\n{"result": 4}\n```'])
def test_ordinary_text_is_an_answer(text: str) -> None:
    assert read(text) == ([], text, [], False)


def test_content_in_parts_is_read_as_one_text() -> None:
    parts = [{"type": "text", "text": "```json\n"}, {"type": "image_url"}, {"type": "text", "text": f"{CALL}\n```"}]
    assert len(TextJsonMethod().parse_answer({"content": parts}, TOOLS).calls) == 1


def test_a_long_row_of_fences_is_read_in_bounded_time() -> None:
    assert read('```{"a' * 100_000)[0] == []


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"好的，我来查：{CALL} 请稍等。", "好的，我来查： 请稍等。"),
        (f"I think.\n{CALL}", "I think."),
        (f'{{"x": 1}} {CALL}', '{"x": 1}'),
    ],
)
def test_an_object_between_words_counts_where_no_fence_holds_a_call(text: str, rest: str) -> None:
    assert read(text) == (THE_CALL, rest, ["fence_missing", "prose_around_call"], False)


@pytest.mark.parametrize(
    ("text", "repairs", "rest"),
    [
        ("```json\n{'name': 'f', 'arguments': {'a': 1,}}\n```", ("single_quotes", "trailing_commas"), ""),
        ('Now.\n```json\n{"name": "f", "arguments": {"a": 1}\n```', ("missing_closers",), "Now."),
        ("```json\n调用：{“name”: “f”, “arguments”: {“a”: 1}}\n```", ("text_around_object", "smart_quotes"), ""),
    ],
)
def test_a_block_is_repaired_by_name_where_that_is_asked_for(text: str, repairs: tuple[str, ...], rest: str) -> None:
    assert read(text)[0] == []
    found = TextJsonMethod(REPAIR_NAMES).parse_answer({"content": text}, TOOLS)
    assert [(c["function"]["name"], c["function"]["arguments"]) for c in found.calls] == [("f", '{"a":1}')]
    assert (found.method_used, found.text, found.has_unexecuted_call) == ("json_fallback", rest, False)
    assert [change.name for change in found.changes] == list(repairs)
    assert [error.repairs for error in found.parse_errors] == [repairs]


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "f", "arguments": {"a": "北',
        '{"name": "f", "arguments": {"a": "x"',
        '```json\n{"name": "f", "arguments": {"a": "x"}',
    ],
)
def test_broken_off_call_is_shown_and_not_run_even_with_every_repair(text: str) -> None:
    found = TextJsonMethod(REPAIR_NAMES).parse_answer({"content": text}, TOOLS)
    assert (found.calls, found.text, found.method_used, found.has_unexecuted_call) == ((), text, "text", True)
    assert [finding.code for finding in found.findings] == ["parse_error", "arguments_truncated"]
    assert found.parse_errors[0].truncated


def test_a_call_in_closed_reasoning_is_only_thought() -> None:
    drafted = '```json\n{"name": "g", "arguments": {}}\n```'
    thinking = f"<think>Perhaps {drafted}</think>\n"
    assert read(f"{thinking}```json\n{CALL}\n```") == (THE_CALL, "", [], False)
    assert read(f"Perhaps {drafted}</think>Done.") == ([], "Done.", [], False)
    assert read(f"<think>Perhaps {drafted}")[0]  # never closed: the call ends it

    kept = TextJsonMethod().parse_answer(
        {"role": "assistant", "content": f"{thinking}Done.", "reasoning_content": "Hm."}, TOOLS
    )
    assert kept.message == {"role": "assistant", "content": "Done.", "reasoning_content": f"Hm.\nPerhaps {drafted}"}


def test_calls_beyond_the_first_of_a_list_are_remarked_on() -> None:
    assert read(f"```json\n[{CALL}, {CALL}]\n```") == (THE_CALL, "", ["calls_ignored"], False)
