"""An idempotency key leads to one run, also when requests come at the same time."""

import pytest
from django.utils import timezone

from tests.factories import make_model, make_provider
from tests.lab.conftest import RunInThread
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.models import LaunchKey, Run
from toolbench.lab.planning.run_request import LaunchError, RunRequest
from toolbench.lab.runs.idempotent_launch import LaunchKeyError, launch_once, use_launch_key

BODY = {"trials": 1}


def build_request(**fields: object) -> RunRequest:
    model = make_model(provider=make_provider("Mine", kind="simulated", service="simulated"))
    return RunRequest.from_json({"models": [model.pk], "scenarios": ["happy_path"], "trials": 1, **fields})


def test_launch_once_with_one_key_in_parallel_launches_one_run(elsewhere: RunInThread) -> None:
    owner, request = get_first_owner(), build_request()
    futures = [elsewhere(launch_once, request, owner=owner, key="k", body=BODY) for _ in range(4)]
    found = [future.result(timeout=30) for future in futures]
    assert len({run.pk for run, _ in found}) == 1
    assert sorted(is_new for _, is_new in found) == [False, False, False, True]
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_launch_once_key_belongs_to_user_and_request() -> None:
    owner, request = get_first_owner(), build_request()
    run, is_new = launch_once(request, owner=owner, key="k", body=BODY)
    assert is_new
    with pytest.raises(LaunchKeyError, match="another request"):
        launch_once(request, owner=owner, key="k", body={"title": "x"})
    other = type(owner).objects.create(username="ana")
    assert launch_once(request, owner=other, key="k", body=BODY)[0] != run
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now())
    with pytest.raises(LaunchKeyError, match="was deleted"):
        launch_once(request, owner=owner, key="k", body=BODY)


@pytest.mark.django_db
def test_launch_once_refused_or_without_key_stores_no_key() -> None:
    owner = get_first_owner()
    with pytest.raises(LaunchError):
        launch_once(build_request(methods=["nothing"]), owner=owner, key="k", body=BODY)
    assert launch_once(build_request(), owner=owner, key="", body=BODY)[1]
    assert launch_once(build_request(), owner=owner, key="", body=BODY)[1]
    assert not LaunchKey.objects.exists()


@pytest.mark.django_db
def test_use_launch_key_without_run_stores_no_key() -> None:
    owner = get_first_owner()
    with use_launch_key(owner, "k", BODY) as row:
        assert row.run is None
    assert not LaunchKey.objects.exists()
