import pytest

from toolbench.engine.formats.json_calls import CallKeys, parse_object


@pytest.mark.parametrize("value", [None, "", "  \n", "null", '""'])
def test_parse_object_of_no_or_blank_arguments_returns_empty_object(value: object) -> None:
    assert parse_object(value) == {}


@pytest.mark.parametrize("value", ["[1]", "text", 7, [1]])
def test_parse_object_of_other_value_returns_none(value: object) -> None:
    assert parse_object(value) is None


@pytest.mark.parametrize(("call_id", "read_id"), [("a", "a"), (0, "0"), (True, ""), (None, ""), ([1], "")])
def test_iterate_calls_reads_ids_that_are_texts_or_numbers(call_id: object, read_id: str) -> None:
    calls = list(CallKeys().iterate_calls({"name": "f", "arguments": {}, "id": call_id}))
    assert [call.id for call in calls if call] == [read_id]
