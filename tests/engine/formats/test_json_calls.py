import pytest

from toolbench.engine.formats.json_calls import parse_object


@pytest.mark.parametrize("value", [None, "", "  \n", "null", '""'])
def test_parse_object_of_no_or_blank_arguments_returns_empty_object(value: object) -> None:
    assert parse_object(value) == {}


@pytest.mark.parametrize("value", ["[1]", "text", 7, [1]])
def test_parse_object_of_other_value_returns_none(value: object) -> None:
    assert parse_object(value) is None
