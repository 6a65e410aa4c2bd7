import pytest

from toolbench.engine.methods import inline_reasoning
from toolbench.engine.methods.inline_reasoning import remove_partial_reasoning, split_text_reasoning
from toolbench.engine.methods.text_json import TextJsonMethod
from toolbench.engine.strict_json import MAX_DEPTH, read_json
from toolbench.engine.tools.definitions import ToolDefinition

TOOLS = (ToolDefinition("f", "F."),)


def render_call(value: str) -> str:
    return f'{{"name": "f", "arguments": {{"a": "{value}"}}}}'


@pytest.mark.parametrize("value", ["x <think>y</think> z", "ends with </think>", "<think> begins", "```py </think>```"])
@pytest.mark.parametrize("surrounding_text", ["{}", "Sure: {}", "```json\n{}\n```", "<think>So.</think>{} Done."])
def test_think_tags_in_an_argument_stay_in_it(surrounding_text: str, value: str) -> None:
    parsed = TextJsonMethod().parse_answer({"content": surrounding_text.format(render_call(value))}, TOOLS)
    assert parsed.parsed_arguments == ({"a": value},)
    assert "think" not in parsed.text


def test_split_text_reasoning_keeps_object_in_reasoning() -> None:
    reasoning = f"Perhaps {render_call('x')}, \ue0000\ue000 or {{}}."
    assert split_text_reasoning(f"<think>{reasoning}</think>Yes.") == ("Yes.", reasoning)
    assert split_text_reasoning(f"{reasoning}</think>Yes {{}}") == ("Yes {}", reasoning)


@pytest.mark.parametrize(
    ("partial_text", "expected"),
    [
        ("Yes <think>Perhaps {}", "Yes "),
        ("<think>Perhaps {}</think>No", "No"),
        ("Perhaps {}", "Perhaps {}"),
        ('{"a": "<think>"} and', '{"a": "<think>"} and'),
        ("<think>Hm.</think>Yes.\n<think>Done", "Yes."),
        ("<think>Hm.</think>Yes.\n[THINK]Hm.[/THINK]\nNo. <think>Done", "Yes.\n\nNo."),
        ("word<think>Hm.</think>", "word<think>Hm.</think>"),
        ("`<think>` begins it. <think>Hm", "`<think>` begins it. "),
    ],
)
def test_remove_partial_reasoning_hides_open_reasoning(partial_text: str, expected: str) -> None:
    assert remove_partial_reasoning(partial_text) == expected


def test_text_json_watcher_ignores_calls_in_reasoning() -> None:
    build_watch = TextJsonMethod().build_watcher(TOOLS)
    assert build_watch
    watch = build_watch()
    parts = (f"<think>Perhaps {render_call('draft')}", "</think>", render_call("real"))
    arguments = [call["function"]["arguments"] for part in parts for call in watch(part)]
    assert arguments == ['{"a":"real"}']


CALL = '{"tool": "ping", "arguments": {}}'


@pytest.mark.parametrize("text", [CALL, f"```json\n{CALL}\n```"])
@pytest.mark.parametrize(
    "shape", ["{}</think>", "{}</think>Hello", "<think></think>{}</think>", "<think></think>{}Hello"]
)
def test_call_before_stray_end_tag_is_no_reasoning(text: str, shape: str) -> None:
    text_left, reasoning = split_text_reasoning(shape.replace("{}", text))

    assert (CALL in text_left, reasoning) == (True, "")


def test_call_inside_reasoning_stays_in_reasoning() -> None:
    assert split_text_reasoning(f"<think>{CALL}</think>Hello") == ("Hello", CALL)
    assert split_text_reasoning(f"Hm: {CALL}</think>Hello") == ("Hello", f"Hm: {CALL}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think>Yes. <think>b", ("Yes. <think>b", "a")),
        ("<think>a</think>\n<think>b", ("<think>b", "a")),
        ("<think>a</think>Yes.\n[THINK]b[/THINK]\nNo. <think>c", ("Yes.\n\nNo. <think>c", "ab")),
        ("Perhaps</think>Yes.\n<think>b", ("Yes.\n<think>b", "Perhaps")),
        ("Yes. <think>b\n[THINK]c[/THINK]", ("Yes. <think>b\n[THINK]c[/THINK]", "")),
        ("<think>a</think>word<think>b</think>end", ("word<think>b</think>end", "a")),
    ],
)
def test_split_text_reasoning_removes_closed_reasoning(text: str, expected: tuple[str, str]) -> None:
    assert split_text_reasoning(text) == expected


def test_call_before_open_reasoning_is_read() -> None:
    text = f"<think>Perhaps {render_call('draft')}.</think>{render_call('real')}\n\n<think>Done"
    assert TextJsonMethod().parse_answer({"content": text}, TOOLS).parsed_arguments == ({"a": "real"},)
    assert remove_partial_reasoning(text) == render_call("real")


@pytest.mark.parametrize(
    "text_before",
    [
        'I think {"a":1} isn\'t it.',
        "In {it's so",
        'First {"a: 1}, then',
        'Not {"a": "b {"',
        f"{{note: {render_call('x</think>y')}}}",
        '{"a": NaN, "b": 1' + "0" * 5000 + "}",
        '{"a":' * 200 + "1" + "}" * 200,
    ],
)
def test_text_before_an_object_does_not_change_its_arguments(text_before: str) -> None:
    call = render_call("x</think>y")
    assert split_text_reasoning(f"<think>Hm.</think>{text_before}\n{call}") == (f"{text_before}\n{call}", "Hm.")


@pytest.mark.parametrize(
    "part", ['{"a":', '{"', "{", '{"a":[1,', "<think>a</think> ", "<think>", '{"{', '{"a":{"b":1},']
)
def test_split_text_reasoning_reads_long_text(part: str) -> None:
    text = f"<think>Hm.</think>{part * 20_000}"
    text_left, reasoning = split_text_reasoning(text)
    assert (text_left.endswith(part.strip()), reasoning[:3]) == ("</think>" not in part, "Hm.")


def test_split_text_reasoning_reads_many_blanks_after_an_object() -> None:
    text_before = "{}" + " " * 300_000 + "x"
    assert split_text_reasoning(f"{text_before}</think>y") == ("y", text_before)


def test_long_text_in_nested_braces_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_texts: list[str] = []

    def read_and_note(text: str) -> object:
        parsed_texts.append(text)
        return read_json(text)

    monkeypatch.setattr(inline_reasoning, "read_json", read_and_note)
    text = '{"a":' * 120 + "[" + "1," * 1000 + "]" + "}" * 120
    assert split_text_reasoning(f"<think>Hm.</think>{text}") == (text, "Hm.")
    assert sum(map(len, parsed_texts)) < 2 * len(text)


@pytest.mark.parametrize(("start", "end", "levels"), [('{"a":', "}", 1), ('{"a":[', "]}", 2)])
def test_object_with_too_many_levels_is_not_masked(start: str, end: str, levels: int) -> None:
    deepest = start * (MAX_DEPTH // levels) + '"<think>x</think>"' + end * (MAX_DEPTH // levels)
    assert split_text_reasoning(deepest) == (deepest, "")
    too_deep = '{"b": "So, %s", "a": ' + deepest + "}"
    assert split_text_reasoning(too_deep % "<think>y</think>") == (too_deep % "", "y")
