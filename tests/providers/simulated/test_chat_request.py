"""Limits of tokens in chat requests."""

from typing import Any

import pytest

from toolbench.providers.simulated.chat_request import parse_chat_request


@pytest.mark.parametrize(
    ("limits", "is_tight"),
    [
        ({"max_tokens": None, "max_completion_tokens": 16}, True),
        ({"max_tokens": 16}, True),
        ({"max_tokens": 4096, "max_completion_tokens": 16}, False),
        ({}, False),
    ],
)
def test_parse_chat_request_reads_the_limit_that_is_set(limits: dict[str, Any], is_tight: bool) -> None:
    assert parse_chat_request({"messages": [{"role": "user", "content": "Hi"}], **limits}).is_tight == is_tight
