"""A few generated requests for each operation; tests/long/test_api.py sends more."""

from typing import Any

import hypothesis
import pytest
import schemathesis

from tests.api.generated_requests import SLOW, load_schema, send_and_check

pytestmark = pytest.mark.django_db
SCHEMA = load_schema(every_boundary=False)


@SCHEMA.parametrize()
@hypothesis.settings(max_examples=3, deadline=None, suppress_health_check=SLOW, derandomize=True)
def test_api_answers_generated_requests_as_documented(
    case: schemathesis.Case[Any], secret: str, generated_rows: dict[str, Any]
) -> None:
    send_and_check(case, secret, generated_rows)
