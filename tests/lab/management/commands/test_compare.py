"""`manage.py compare` and `manage.py decide`, with this database and through the API."""

import io

import pytest
from django.core.management import CommandError, call_command
from pytest_django.live_server_helper import LiveServer

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.accounts.tokens import Scope, create_api_token
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def runs() -> tuple[Run, Run]:
    """Make a run that mostly passes and one that mostly fails, of one model."""
    model, runs = make_model("vendor/a"), []
    for passed in (36, 10):
        run = make_run()
        make_trials(make_cell(make_config(run, model)), **{"pass": passed, "fail": 40 - passed})
        runs.append(run)
    return runs[0], runs[1]


@pytest.fixture
def server(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> str:
    secret = create_api_token(get_first_owner(), "shell", Scope.values, None)[1]
    monkeypatch.setenv("TOOLBENCH_TOKEN", secret)
    url: str = live_server.url
    return url


def print_command(name: str, *arguments: object, **options: str) -> str:
    out = io.StringIO()
    call_command(name, *map(str, arguments), **options, stdout=out)
    return out.getvalue()


def test_compare_prints_both_rates_and_the_difference(runs: tuple[Run, Run]) -> None:
    printed = print_command("compare", runs[0].pk, runs[1].pk)

    assert "happy_path: 36/40 → 10/40, -65 points" in printed
    assert "Answered success, " in printed


@pytest.mark.parametrize(
    "words", [("metric=delivered",), ("scenario=happy_path", "scenario=missing_workspace_id"), ("method=native",)]
)
def test_compare_through_the_api_prints_the_same(runs: tuple[Run, Run], server: str, words: tuple[str, ...]) -> None:
    for run in runs:
        make_trials(make_cell(run.configs.get(), "missing_workspace_id"), **{"pass": 30, "fail": 10})
    sides = (runs[0].pk, runs[1].pk, *words)
    printed = print_command("compare", *sides)

    assert "happy_path: 36/40" in printed
    assert "missing_workspace_id: 30/40" in printed
    assert print_command("compare", *sides, server=server) == printed


def test_decide_prints_the_configuration_and_its_figures(runs: tuple[Run, Run], server: str) -> None:
    rule = (f"run={runs[0].pk}", "success=50", "within=none", "want=fastest")

    printed = print_command("decide", *rule)

    assert "vendor/a" in printed
    assert "end-to-end success 36/40" in printed
    assert print_command("decide", *rule, server=server) == printed


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("compare", 1), "Name two different runs, or two sides"),
        (("compare", 999998, 999999), "There is no run 999998"),
        (("compare", "a_run=1", "b_colour=red"), "There is no parameter 'b_colour=red'"),
        (("compare", 1, 2, "metric=beauty"), "Change metric"),
        (("decide", "success"), "There is no parameter 'success'"),
        (("decide", "want=nicest"), "Change want"),
    ],
)
def test_compare_and_decide_refuse_unreadable_parameters_with_2(words: tuple[object, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as raised:
        print_command(str(words[0]), *words[1:])
    assert raised.value.returncode == 2


def test_decide_on_a_server_without_a_token_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLBENCH_TOKEN", raising=False)
    with pytest.raises(CommandError, match="Set TOOLBENCH_TOKEN to a token"):
        print_command("decide", server="http://127.0.0.1:9")


def test_decide_with_a_refused_token_says_so(live_server: LiveServer) -> None:
    with pytest.raises(CommandError, match="token"):
        print_command("decide", server=live_server.url, token="tb_wrong")
