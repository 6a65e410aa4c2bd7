"""The API with every bound of every field, and with generated requests for each operation."""

from typing import Any

import hypothesis
import pytest
import schemathesis

from tests.api.conftest import generated_rows, secret
from tests.api.generated_requests import SLOW, load_schema, send_and_check

__all__ = ["generated_rows", "secret"]
pytestmark = [pytest.mark.long, pytest.mark.django_db]
SCHEMA = load_schema(every_boundary=True)


@SCHEMA.parametrize()
@hypothesis.settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=SLOW)
def test_api_answers_bounds_and_generated_requests_as_documented(
    case: schemathesis.Case[Any],
    secret: str,  # the fixture
    generated_rows: dict[str, Any],
) -> None:
    send_and_check(case, secret, generated_rows)
