"""Exceptions for responses of the API."""

import pytest

from toolbench.client.errors import TooManyRequestsError, build_error


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("²", None), ("7.5", None), ("", None), (None, None)])
def test_build_error_reads_whole_seconds_of_retry_after(header: str | None, seconds: float | None) -> None:
    error = build_error(429, {}, header)
    assert isinstance(error, TooManyRequestsError)
    assert error.retry_after == seconds
