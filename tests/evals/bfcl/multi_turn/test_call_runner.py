"""Tests of the process that runs BFCL's classes: new instances for each request, a time limit, public methods only."""

import sys
from dataclasses import replace

import pytest

from toolbench.evals.bfcl.multi_turn.call_runner import CallRunnerError, ClassesProcess, run_calls
from toolbench.evals.bfcl.multi_turn.cases import iter_multi_turn_cases

HANGING_CODE = "print('ready', flush=True)\ninput()\ninput()"
CASE = next(iter_multi_turn_cases(["multi_turn_base"]))


def test_run_calls_starts_every_request_from_the_initial_state() -> None:
    turns = [[("cd", {"folder": "document"}), ("mkdir", {"dir_name": "temp"})]]
    assert run_calls(CASE, turns) == run_calls(CASE, turns)


@pytest.mark.parametrize("name", ["__init__", "_load_scenario", "os.system", "eval", "root", ""])
def test_run_calls_other_name_than_a_public_method_fails(name: str) -> None:
    (turn,) = run_calls(CASE, [[(name, {})]])
    assert turn.failed == (True,)
    assert turn.results == (f"Error during execution: name {name!r} is not defined",)


def test_run_calls_unsimulated_class_fails_and_process_survives() -> None:
    with pytest.raises(CallRunnerError, match="failed"):
        run_calls(replace(CASE, classes=("WebSearchAPI",)), [[]])
    assert run_calls(CASE, [[("pwd", {})]])[0].failed == (False,)


def test_classes_process_without_answer_in_time_is_restarted() -> None:
    process = ClassesProcess((sys.executable, "-c", HANGING_CODE), timeout_seconds=0.2)
    for _ in range(2):  # the second request starts a new process
        with pytest.raises(CallRunnerError, match=r"did not answer within 0\.2 s"):
            process.ask({})


def test_classes_process_environment_has_no_api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret")
    code = (
        "import json, os\nprint('ready', flush=True)\ninput()\nprint(json.dumps(dict(os.environ)), flush=True)\ninput()"
    )
    process = ClassesProcess((sys.executable, "-I", "-c", code))
    assert "OPENROUTER_API_KEY" not in process.ask({})
    process.close()
