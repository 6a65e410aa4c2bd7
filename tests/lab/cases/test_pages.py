import pytest

from tests.factories import make_cell, make_config, make_run
from toolbench.lab.cases.pages import MAX_FAILED_CHECKS_SHOWN, FailedCaseCheck, _build_case_run


@pytest.mark.django_db
def test_case_run_finds_worst_argument_beyond_the_shown_checks() -> None:
    other_checks = [FailedCaseCheck(f"answer {number}", 9, 1, "") for number in range(MAX_FAILED_CHECKS_SHOWN)]
    argument = FailedCaseCheck("cancel_order $.order", 2, 1, "")
    case_run = _build_case_run(make_cell(make_config(make_run())), 1, [*other_checks, argument])
    assert case_run.failed_checks == tuple(other_checks)
    assert case_run.worst_argument == argument
