"""Upgrade of an older database: sets of users with reserved names, and undecided cells of cancelled runs."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command

from tests.factories import make_cell, make_config, make_run
from toolbench.lab.cases.edit import RESERVED_SET_NAMES
from toolbench.lab.models import CaseSet, Cell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before rounds of cancelled runs were ended, and to the newest one after the test."""
    call_command("migrate", "lab", "0058", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def test_migrate_renames_sets_of_users_with_reserved_names(request: pytest.FixtureRequest) -> None:
    reserved = [CaseSet.objects.create(name=name, kind="own") for name in sorted(RESERVED_SET_NAMES)[1:]]
    bfcl = CaseSet.objects.create(name=sorted(RESERVED_SET_NAMES)[0], kind="bfcl")
    own = CaseSet.objects.create(name="Weather", kind="own")
    names = {case_set.pk: case_set.name for case_set in (bfcl, own)} | {
        case_set.pk: f"{case_set.name}, cases of users {case_set.pk}" for case_set in reserved
    }
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", verbosity=0)

    assert dict(CaseSet.objects.values_list("pk", "name")) == names


def test_migrate_ends_rounds_of_undecided_cells_of_cancelled_runs(request: pytest.FixtureRequest) -> None:
    def make_undecided_cell(state: str, error: float | None = 0.05) -> int:
        return make_cell(make_config(make_run(state=state)), error=error).pk

    cancelled, running = make_undecided_cell("cancelled"), make_undecided_cell("running")
    fixed = make_undecided_cell("cancelled", error=None)
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", verbosity=0)

    cells = dict(Cell.objects.values_list("pk", "decided"))
    assert cells == {cancelled: "cancelled", running: "", fixed: ""}
