from toolbench.engine.events import Event
from toolbench.engine.types import ToolCall


def test_light_dataclass_compares_by_value_and_has_no_dict() -> None:
    first, same, other = ToolCall("1", "get"), ToolCall("1", "get"), ToolCall("2", "get")
    assert first == same
    assert {first: "found"}[same] == "found"
    assert first != other
    assert not hasattr(Event("final", 0), "__dict__")
