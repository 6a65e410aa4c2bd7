"""Rows of steps."""

from toolbench.engine.events import ToolResult
from toolbench.engine.types import Envelope, ToolCall
from toolbench.lab.traces.step_rows import build_step_row
from toolbench.providers.driver.step_records import ToolStep


def test_row_of_a_tool_has_the_bytes_of_its_result() -> None:
    result = ToolResult(ToolCall("1", "get", {}), {}, "ok", Envelope(True, "get"), "Zürich", was_executed=True)
    assert build_step_row(ToolStep(1, 0, 0.0, 0.5, result))["response_bytes"] == 7
