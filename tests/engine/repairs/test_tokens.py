"""Search for objects in a text that may have other brackets and quotes."""

import pytest

from toolbench.engine.repairs.tokens import MAX_STRAY_BRACKETS, find_objects


@pytest.mark.parametrize("prose", ['The character "{" starts it: ', "A { opens, and a [ too: ", "{don't ", "{, "])
def test_find_objects_reads_object_after_a_stray_bracket(prose: str) -> None:
    assert find_objects(f'{prose}{{"a": {{}}}}.') == (['{"a": {}}'], f"{prose}.")


@pytest.mark.parametrize("text", ['{"a": {"b": 1}', "{'a': {'b': 1}", "{a: [{}", '{"a', '{{"b": 1}'])
def test_find_objects_leaves_out_the_parts_of_an_unclosed_object(text: str) -> None:
    assert find_objects(text) == ([], text)


def test_find_objects_limits_the_number_of_stray_brackets() -> None:
    assert find_objects("{ x " * MAX_STRAY_BRACKETS + "{}")[0] == ["{}"]
    assert find_objects("{ x " * (MAX_STRAY_BRACKETS + 1) + "{}")[0] == []
