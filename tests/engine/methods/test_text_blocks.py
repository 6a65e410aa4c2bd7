import pytest

from toolbench.engine.methods.json_in_text import MAX_BLOCKS
from toolbench.engine.methods.text_blocks import find_bare_blocks, find_repairable_block
from toolbench.engine.repairs import REPAIR_NAMES


def test_find_bare_blocks_returns_position_of_each_equal_object() -> None:
    text = 'f: {"x": 1} and {"x": 1}.'
    assert [
        (text[block.start : block.end], block.value, block.is_fenced) for block in find_bare_blocks(text, ["f"])
    ] == [('{"x": 1}', {"x": 1}, False)] * 2


@pytest.mark.parametrize("text", ['g: {"x": 1}', 'f: <tool_call>{"x": 1}', "f: {x}", "f"])
def test_find_bare_blocks_ignores_text_without_tool_or_with_markers(text: str) -> None:
    assert list(find_bare_blocks(text, ["f"])) == []


def test_find_bare_blocks_returns_max_blocks_at_most() -> None:
    assert len(list(find_bare_blocks("f" + "{}" * 100, ["f"]))) == MAX_BLOCKS


@pytest.mark.parametrize("text", ["", "f", "{'name': 'g'}", "```json\n{'name': 'g'}\n```"])
def test_find_repairable_block_without_known_tool_returns_none(text: str) -> None:
    assert find_repairable_block(text, ["f"], REPAIR_NAMES) is None


def test_find_repairable_block_without_repairs_returns_none() -> None:
    assert find_repairable_block("{'name': 'f'}", ["f"], ()) is None
