"""Contents of messages in the dialect of OpenAI's chat completions."""

from typing import Any

import pytest

from toolbench.gateway.dialects.chat import ChatDialect
from toolbench.gateway.request import GatewayError

QUESTION = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"content": "yes", "refusal": "no"}, "yes"),
        ({"content": None, "refusal": "no"}, "no"),
        ({"content": []}, ""),
        ({}, ""),
    ],
)
def test_parse_reads_content_or_refusal_as_text(fields: dict[str, Any], text: str) -> None:
    body = {"model": "a", "messages": [QUESTION, {"role": "assistant", **fields}, QUESTION]}
    assert ChatDialect().parse(body).messages[1] == {"role": "assistant", "content": text}


@pytest.mark.parametrize("content", [False, 0, {}])
def test_parse_refuses_empty_content_that_is_no_text(content: Any) -> None:
    with pytest.raises(GatewayError, match="Message 0 has a part that is not text"):
        ChatDialect().parse({"model": "a", "messages": [{"role": "user", "content": content}]})
