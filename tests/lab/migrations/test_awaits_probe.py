"""Upgrade of a database from before the columns `left_out` of trials and `awaits_probe` of configurations."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.models import RefusedParameter, RunConfig

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before both columns, and to the newest one after the test."""
    call_command("migrate", "lab", "0020", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def test_migrate_sets_awaits_probe_of_auto_configurations(request: pytest.FixtureRequest) -> None:
    run = make_run()
    for position, method in enumerate(("auto", "native")):
        make_config(run, method=method, position=position)
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", verbosity=0)

    assert dict(RunConfig.objects.values_list("method", "awaits_probe")) == {"auto": True, "native": False}


def test_migrate_adds_empty_left_out_to_stored_trials(request: pytest.FixtureRequest) -> None:
    trial = make_trial(make_cell(make_config(make_run())), left_out=[{"name": "seed"}])
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", verbosity=0)

    trial.refresh_from_db()
    assert (trial.left_out, trial.outcome) == ([], "pass")
    assert not RefusedParameter.objects.exists()
