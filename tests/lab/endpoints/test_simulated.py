"""Simulated models of the built-in data."""

import pytest

from toolbench.lab import builtin_data
from toolbench.lab.endpoints.simulated import get_simulated_models


@pytest.mark.django_db
def test_get_simulated_models_have_true_rates() -> None:
    builtin_data.load_builtin_data()
    rows = get_simulated_models()
    assert rows
    assert all(row.model.provider.kind == "simulated" and row.model.true_rates for row in rows)
    rates = {row.model.name: row.scenario_rates for row in rows}
    assert rates["perfect"] == {}
    assert rates["chatty-control"] == {"chat_only": {"raw": 0.0, "baseline": 0.0, "production": 0.0}}
