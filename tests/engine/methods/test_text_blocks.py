import pytest

from toolbench.engine.methods.json_in_text import MAX_BLOCKS
from toolbench.engine.methods.text_blocks import find_bare_blocks, find_repairable_block
from toolbench.engine.repairs import REPAIR_NAMES


def test_a_bare_object_has_its_place_and_equal_ones_each_their_own() -> None:
    text = 'f: {"x": 1} and {"x": 1}.'
    assert [
        (text[block.start : block.end], block.value, block.is_fenced) for block in find_bare_blocks(text, ["f"])
    ] == [('{"x": 1}', {"x": 1}, False)] * 2


@pytest.mark.parametrize("text", ['g: {"x": 1}', 'f: <tool_call>{"x": 1}', "f: {x}", "f"])
def test_text_block_is_none_without_tool_name_or_with_other_markers(text: str) -> None:
    assert list(find_bare_blocks(text, ["f"])) == []


def test_only_the_first_objects_are_looked_at() -> None:
    assert len(list(find_bare_blocks("f" + "{}" * 100, ["f"]))) == MAX_BLOCKS


@pytest.mark.parametrize("text", ["", "f", "{'name': 'g'}", "```json\n{'name': 'g'}\n```"])
def test_repairs_find_nothing_where_no_known_tool_is_named(text: str) -> None:
    assert find_repairable_block(text, ["f"], REPAIR_NAMES) is None


def test_without_repairs_nothing_is_mended() -> None:
    assert find_repairable_block("{'name': 'f'}", ["f"], ()) is None
