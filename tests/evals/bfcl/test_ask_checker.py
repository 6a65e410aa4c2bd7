"""Tests of requests to BFCL's checker in its process."""

import sys

import pytest

from toolbench.evals.bfcl import ask_checker
from toolbench.evals.bfcl.ask_checker import check_answers
from toolbench.evals.bfcl.cases import iter_cases
from toolbench.evals.bfcl.golden_answers import build_golden_calls

UNSATISFIABLE = {"live_simple_106-63-0", "live_simple_112-68-0", "live_multiple_862-181-3", "live_multiple_964-207-0"}


def test_check_answers_accepts_golden_calls_of_all_but_four_cases() -> None:
    """Two cases require a parameter and accept no value for it, one requires a parameter that its function does not
    have, and one omits a parameter that its function requires."""
    cases = list(iter_cases())

    verdicts = check_answers([(case, build_golden_calls(case)) for case in cases])

    assert {case.id for case, verdict in zip(cases, verdicts, strict=True) if not verdict.valid} == UNSATISFIABLE


def test_check_answers_refuses_wrong_value_wrong_name_and_missing_call() -> None:
    case = next(iter_cases(["parallel"]))
    first, *others = build_golden_calls(case)

    wrong = [
        [("no_such_tool", first[1]), *others],
        [(first[0], dict.fromkeys(first[1])), *others],
        others,
        [],
    ]

    verdicts = check_answers([(case, calls) for calls in [[first, *others], *wrong]])
    assert [verdict.valid for verdict in verdicts] == [True, False, False, False, False]
    assert verdicts[0].error == ""
    assert all(verdict.error for verdict in verdicts[1:])
    assert verdicts[3].error == "Wrong number of functions."


def test_check_lines_of_a_process_that_dies_while_writing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys; sys.stdout.write('{\"valid\": tr'); sys.exit('out of memory')"
    monkeypatch.setattr(ask_checker, "_CHECKER_COMMAND", (sys.executable, "-c", program))

    with pytest.raises(RuntimeError, match="out of memory"):
        ask_checker.check_lines(["{}"])
