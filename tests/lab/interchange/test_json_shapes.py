"""Schemas of the JSON columns of imported rows."""

from typing import Any

import pytest

from toolbench.lab.interchange.json_shapes import is_valid_column
from toolbench.lab.planning.run_request import RunRequest
from toolbench.providers.simulated.personas import load_personas


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("request", {"overrides": [1]}),
        ("request", {"overrides": {"response_transforms": 1}}),
        ("request", {"profiles": [1]}),
        ("true_rates", {"tools": 5}),
        ("true_rates", {"tools": {"raw": "all"}}),
        ("true_rates", {"streamed": {"tools": 5}}),
        ("left_out", [{"name": []}]),
    ],
)
def test_is_valid_column_refuses_what_no_page_can_show(column: str, value: Any) -> None:
    assert not is_valid_column(column, value)


def test_is_valid_column_accepts_what_toolbench_stores() -> None:
    request = RunRequest(profiles=("default",), overrides={"response_transforms": ["x"]}).to_json()
    assert is_valid_column("request", request)
    assert is_valid_column("left_out", [{"name": "seed", "why": "No seed.", "known": True}])
    assert all(is_valid_column("true_rates", persona.true_rates) for persona in load_personas().values())
