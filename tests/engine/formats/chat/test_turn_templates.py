import pytest

from toolbench.engine import formats
from toolbench.engine.formats.chat.turn_spec import ToolsPosition, TurnSpec
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS

BEFORE_ALL = ("<s>", "<bos>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "<|startoftext|>", "<BOS_TOKEN>")


def test_tools_stand_in_the_systems_turn_only_where_there_is_one() -> None:
    in_system = (ToolsPosition.SYSTEM, ToolsPosition.SYSTEM_HEAD)
    assert [name for name, turns in TURN_SPECS.items() if turns.system is None and turns.tools in in_system] == []


def test_turns_belong_to_formats_there_are() -> None:
    assert set(TURN_SPECS) <= set(formats.list_format_names())


@pytest.mark.parametrize("name", TURN_SPECS)
def test_nothing_says_again_what_the_server_puts_in_front(name: str) -> None:
    turns = TURN_SPECS[name]
    texts = [turns.begins, turns.asks, *turns.user, *turns.assistant, *(turns.system or ())]
    assert not [text for text in texts for token in BEFORE_ALL if token in text]


@pytest.mark.parametrize("name", TURN_SPECS)
def test_what_ends_an_answer_is_never_part_of_it(name: str) -> None:
    """A server may send the stop string back."""
    assert [formats.parse(f"Cold.{stop}", format=name).text for stop in TURN_SPECS[name].stops] == ["Cold."] * len(
        TURN_SPECS[name].stops
    )


@pytest.mark.parametrize("turns", TURN_SPECS.values(), ids=TURN_SPECS)
def test_an_answer_ends_where_the_assistants_turn_does(turns: TurnSpec) -> None:
    """Else the model would go on to speak for the others. Two families end a turn with the head of the next one."""
    ends = turns.assistant[1].strip() or turns.text[1]
    assert turns.stops
    assert not ends or ends.endswith((*turns.stops, "<|end|>"))
