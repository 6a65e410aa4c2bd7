import pytest

from tests.factories import make_run
from toolbench.lab.models import Run
from toolbench.lab.results.run_choices import NEWEST, runs_to_choose

pytestmark = pytest.mark.django_db


def test_a_chosen_run_is_offered_however_old_it_is() -> None:
    runs = [make_run() for _ in range(NEWEST + 2)]

    offered = runs_to_choose(Run.objects.all(), [runs[0].pk])

    assert offered == (runs[0], *reversed(runs[2:]))
