"""Checks of calls and ids in stored answers."""

import pytest

from tests.providers.probing.probe_runs import probe_personas
from toolbench.providers.probing.answer_shape import check_ids
from toolbench.providers.probing.probes import probe_first_use


@pytest.mark.parametrize(
    ("persona", "outcome", "learned"),
    [("perfect", "failed", {"ids": "repeated"}), ("legacy-function-call", "unknown", {})],
)
def test_ids_check_ignores_calls_in_the_old_field(persona: str, outcome: str, learned: dict[str, str]) -> None:
    exchanges = probe_personas((persona,), probe_first_use)[persona].exchanges

    check = check_ids([*exchanges, *exchanges])

    assert (check.outcome, check.learned) == (outcome, learned)
