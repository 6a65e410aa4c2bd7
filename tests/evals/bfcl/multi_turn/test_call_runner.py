"""Tests of the process of BFCL's classes: new instances for every request, a time limit, and public methods only."""

import sys
from dataclasses import replace

import pytest

from toolbench.evals.bfcl.multi_turn.call_runner import CallRunnerError, ClassesProcess, run_calls
from toolbench.evals.bfcl.multi_turn.cases import iter_multi_turn_cases

HANGS = "print('ready', flush=True)\ninput()\ninput()"
CASE = next(iter_multi_turn_cases(["multi_turn_base"]))


def test_a_question_finds_nothing_of_the_one_before() -> None:
    made = [[("cd", {"folder": "document"}), ("mkdir", {"dir_name": "temp"})]]
    assert run_calls(CASE, made) == run_calls(CASE, made)


@pytest.mark.parametrize("name", ["__init__", "_load_scenario", "os.system", "eval", "root", ""])
def test_only_public_methods_of_the_named_classes_are_reached(name: str) -> None:
    (turn,) = run_calls(CASE, [[(name, {})]])
    assert turn.failed == (True,)
    assert turn.results == (f"Error during execution: name {name!r} is not defined",)


def test_unsimulated_class_is_not_loaded_and_process_survives() -> None:
    with pytest.raises(CallRunnerError, match="failed"):
        run_calls(replace(CASE, classes=("WebSearchAPI",)), [[]])
    assert run_calls(CASE, [[("pwd", {})]])[0].failed == (False,)


def test_a_process_that_does_not_answer_in_time_is_ended() -> None:
    asked = ClassesProcess((sys.executable, "-c", HANGS), timeout_seconds=0.2)
    for _ in range(2):  # it is started anew
        with pytest.raises(CallRunnerError, match=r"no answer within 0\.2 s"):
            asked.ask({})


def test_no_secret_of_ours_is_in_the_environment_of_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret")
    code = (
        "import json, os\nprint('ready', flush=True)\ninput()\nprint(json.dumps(dict(os.environ)), flush=True)\ninput()"
    )
    asked = ClassesProcess((sys.executable, "-I", "-c", code))
    assert "OPENROUTER_API_KEY" not in asked.ask({})
    asked.close()
