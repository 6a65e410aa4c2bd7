import pytest

from toolbench.engine.methods.inline_reasoning import remove_partial_reasoning, split_text_reasoning
from toolbench.engine.methods.text_json import TextJsonMethod
from toolbench.engine.tools.definitions import ToolDefinition

TOOLS = (ToolDefinition("f", "F."),)


def a_call(said: str) -> str:
    return f'{{"name": "f", "arguments": {{"a": "{said}"}}}}'


@pytest.mark.parametrize("said", ["x <think>y</think> z", "ends with </think>", "<think> begins", "```py </think>```"])
@pytest.mark.parametrize("around", ["{}", "Sure: {}", "```json\n{}\n```", "<think>So.</think>{} Done."])
def test_tags_in_an_argument_are_part_of_it(around: str, said: str) -> None:
    read = TextJsonMethod().parse_answer({"content": around.format(a_call(said))}, TOOLS)
    assert read.parsed_arguments == ({"a": said},)
    assert "think" not in read.text


def test_an_object_that_was_thought_of_comes_back_whole_with_the_thought() -> None:
    thought = f"Perhaps {a_call('x')}, \ue0000\ue000 or {{}}."
    assert split_text_reasoning(f"<think>{thought}</think>Yes.") == ("Yes.", thought)
    assert split_text_reasoning(f"{thought}</think>Yes {{}}") == ("Yes {}", thought)


@pytest.mark.parametrize(
    ("so_far", "said"),
    [
        ("Yes <think>Perhaps {}", "Yes "),
        ("<think>Perhaps {}</think>No", "No"),
        ("Perhaps {}", "Perhaps {}"),
        ('{"a": "<think>"} and', '{"a": "<think>"} and'),
    ],
)
def test_reasoning_that_is_still_open_says_nothing_yet(so_far: str, said: str) -> None:
    assert remove_partial_reasoning(so_far) == said


def test_what_is_only_drafted_in_a_stream_is_never_told_of() -> None:
    begin = TextJsonMethod().build_watcher(TOOLS)
    assert begin
    watch = begin()
    pieces = (f"<think>Perhaps {a_call('draft')}", "</think>", a_call("real"))
    heard = [call["function"]["arguments"] for piece in pieces for call in watch(piece)]
    assert heard == ['{"a":"real"}']


CALL = '{"tool": "ping", "arguments": {}}'


@pytest.mark.parametrize("text", [CALL, f"```json\n{CALL}\n```"])
@pytest.mark.parametrize(
    "shape", ["{}</think>", "{}</think>Hello", "<think></think>{}</think>", "<think></think>{}Hello"]
)
def test_a_call_in_front_of_a_stray_closer_is_no_thought(text: str, shape: str) -> None:
    said, thought = split_text_reasoning(shape.replace("{}", text))

    assert (CALL in said, thought) == (True, "")


def test_a_call_that_was_drafted_in_a_thought_is_one() -> None:
    assert split_text_reasoning(f"<think>{CALL}</think>Hello") == ("Hello", CALL)
    assert split_text_reasoning(f"Hm: {CALL}</think>Hello") == ("Hello", f"Hm: {CALL}")
