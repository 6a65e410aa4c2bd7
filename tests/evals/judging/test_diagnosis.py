"""Problems of a record, in order, and what makes them good again."""

from tests.evals.records import calling, ended, failing, result, saying
from toolbench.engine.events import ExchangeError
from toolbench.evals.judging.diagnosis import first_problem, problems
from toolbench.evals.scenarios.tools import state_tools

TOOLS = state_tools()


def test_problems_come_in_the_order_of_their_steps() -> None:
    broken = result("state_get", "{", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")
    stranger = result("state_drop", {}, code="TOOL_NOT_ALLOWED")
    record = ended(calling(0, broken, stranger), saying(1, ""))
    assert [(one.failure_class, one.bad.turn, one.bad.call) for one in problems(record, TOOLS)] == [
        ("arguments_not_json", 0, 0),
        ("unknown_tool", 0, 1),
        ("empty_final", 1, None),
    ]
    assert [one.bad.sentence for one in problems(record, TOOLS)] == [
        "Turn 1, parsed call 1: the arguments of state_get are not a JSON object.",
        'Turn 1, parsed call 2: there is no tool called "state_drop".',
        "Turn 2: the answer after the calls is empty: no visible text and no call.",
    ]


def test_a_later_success_of_the_same_tool_mends_a_failed_call() -> None:
    failed = result("state_get", {}, code="INTERNAL_ERROR")
    assert first_problem(ended(calling(0, failed), calling(1, result("state_get", {}))), TOOLS) is None
    assert first_problem(ended(calling(0, failed), calling(1, result("state_patch", {}))), TOOLS) is not None


def test_a_success_beside_it_in_the_same_message_mends_it_too() -> None:
    failed = result("state_get", {}, code="INTERNAL_ERROR")
    assert first_problem(ended(calling(0, failed, result("state_get", {}))), TOOLS) is None
    assert first_problem(ended(calling(0, result("state_get", {}), failed)), TOOLS) is not None


def test_a_blank_answer_is_mended_by_the_next_text() -> None:
    assert first_problem(ended(calling(0, result("state_get", {})), saying(1, " "), saying(2, "Done.")), TOOLS) is None


def test_a_failed_request_is_mended_by_its_retry() -> None:
    error = ExchangeError("tools_unsupported", "no tools here", 400, infrastructure=False, tool_support=True)
    mended, left = (
        first_problem(ended(failing(0, error), saying(0, "Hi")), TOOLS),
        first_problem(ended(failing(0, error)), TOOLS),
    )
    assert mended is None
    assert left is not None
    assert (left.failure_class, left.bad.sentence) == ("tools_not_supported", "Turn 1: no tools here")


def test_an_answer_cut_after_a_good_call_is_no_problem() -> None:
    assert first_problem(ended(calling(0, result("state_get", {}), finish="length")), TOOLS) is None


def test_thousands_of_failed_calls_in_one_answer_are_looked_at_once() -> None:
    failed = result("state_get", {}, code="INTERNAL_ERROR")
    record = ended(calling(0, *[failed] * 5_000), calling(1, result("state_get", {})))
    assert all(one.mended for one in problems(record, TOOLS))
