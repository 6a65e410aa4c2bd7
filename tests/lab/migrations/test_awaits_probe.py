"""A database made before parameters were left out, and before a configuration said that it waits, is brought up."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.models import RefusedParameter, RunConfig

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older() -> Iterator[None]:
    """The schema before both; whatever happens, the newest one comes back."""
    call_command("migrate", "lab", "0020", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def test_upgrade_lets_configurations_of_auto_wait_for_their_probe(request: pytest.FixtureRequest) -> None:
    run = make_run()
    for position, method in enumerate(("auto", "native")):
        make_config(run, method=method, position=position)
    request.getfixturevalue("older")

    call_command("migrate", "lab", verbosity=0)

    assert dict(RunConfig.objects.values_list("method", "awaits_probe")) == {"auto": True, "native": False}


def test_upgrade_says_of_stored_trials_that_nothing_was_left_out(request: pytest.FixtureRequest) -> None:
    trial = make_trial(make_cell(make_config(make_run())), left_out=[{"name": "seed"}])
    request.getfixturevalue("older")

    call_command("migrate", "lab", verbosity=0)

    trial.refresh_from_db()
    assert (trial.left_out, trial.outcome) == ([], "pass")
    assert not RefusedParameter.objects.exists()
