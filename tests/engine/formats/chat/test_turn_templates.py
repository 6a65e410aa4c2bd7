import pytest

from toolbench.engine import formats
from toolbench.engine.formats.chat.turn_spec import ToolsPosition, TurnSpec
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS

PROMPT_START_TOKENS = ("<s>", "<bos>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "<|startoftext|>", "<BOS_TOKEN>")


def test_tools_in_system_turn_require_a_system_turn() -> None:
    in_system = (ToolsPosition.SYSTEM, ToolsPosition.SYSTEM_HEAD)
    assert [
        name for name, turns in TURN_SPECS.items() if turns.system_frame is None and turns.tools_position in in_system
    ] == []


def test_turn_specs_belong_to_known_formats() -> None:
    assert set(TURN_SPECS) <= set(formats.list_format_names())


@pytest.mark.parametrize("name", TURN_SPECS)
def test_turn_specs_omit_the_token_that_servers_add(name: str) -> None:
    turns = TURN_SPECS[name]
    texts = [
        turns.prompt_start,
        turns.effective_turn_start,
        *turns.user_frame,
        *turns.assistant_frame,
        *(turns.system_frame or ()),
    ]
    assert not [text for text in texts for token in PROMPT_START_TOKENS if token in text]


@pytest.mark.parametrize("name", TURN_SPECS)
def test_stops_never_occur_inside_an_answer(name: str) -> None:
    """Parse an answer with a stop string, which a server may include."""
    assert [formats.parse(f"Cold.{stop}", format=name).text for stop in TURN_SPECS[name].stop_texts] == ["Cold."] * len(
        TURN_SPECS[name].stop_texts
    )


@pytest.mark.parametrize("turns", TURN_SPECS.values(), ids=TURN_SPECS)
def test_assistant_turn_ends_with_a_stop(turns: TurnSpec) -> None:
    """Require a stop, or the model would write the next turns, too.

    Two families end a turn with the start of the next one.
    """
    ends = turns.assistant_frame[1].strip() or turns.text_frame[1]
    assert turns.stop_texts
    assert not ends or ends.endswith((*turns.stop_texts, "<|end|>"))
