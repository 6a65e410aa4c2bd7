import pytest

from toolbench.engine.methods.inline_reasoning import remove_partial_reasoning, split_text_reasoning
from toolbench.engine.methods.text_json import TextJsonMethod
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
