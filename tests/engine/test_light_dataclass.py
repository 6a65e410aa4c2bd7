from toolbench.engine.events import Event
from toolbench.engine.types import ToolCall


def test_light_values_are_equal_by_what_is_in_them_and_can_be_keys() -> None:
    one, same, other = ToolCall("1", "get"), ToolCall("1", "get"), ToolCall("2", "get")
    assert one == same
    assert {one: "found"}[same] == "found"
    assert one != other
    assert not hasattr(Event("final", 0), "__dict__")
