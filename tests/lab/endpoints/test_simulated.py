"""Simulated models of the built-in data."""

import pytest

from toolbench.lab import builtin_data
from toolbench.lab.endpoints.simulated import get_simulated_models


@pytest.mark.django_db
def test_get_simulated_models_have_true_rates() -> None:
    builtin_data.load_builtin_data()
    personas = get_simulated_models()
    assert personas
    assert all(persona.provider.kind == "simulated" and persona.true_rates for persona in personas)
