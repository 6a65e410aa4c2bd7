import pytest

from tests.factories import make_run
from toolbench.lab.models import Run
from toolbench.lab.results.run_choices import DEFAULT_RUN_COUNT, list_run_choices

pytestmark = pytest.mark.django_db


def test_list_run_choices_includes_old_chosen_run() -> None:
    runs = [make_run() for _ in range(DEFAULT_RUN_COUNT + 2)]

    offered = list_run_choices(Run.objects.all(), [runs[0].pk])

    assert offered == (runs[0], *reversed(runs[2:]))
