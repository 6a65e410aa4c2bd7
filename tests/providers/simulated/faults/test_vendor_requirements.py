"""Requirements of vendors for ids of calls."""

import pytest

from toolbench.providers.simulated.chat_request import parse_chat_request
from toolbench.providers.simulated.faults.vendor_requirements import ids_of_nine


@pytest.mark.parametrize(("call_id", "is_refused"), [("abcdEF123", False), ("call_1234567", True), ("", True)])
def test_ids_of_nine_refuses_other_ids_and_empty_ones(call_id: str, is_refused: bool) -> None:
    calls = [{"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    assert (ids_of_nine(parse_chat_request({"messages": messages})) is not None) == is_refused
