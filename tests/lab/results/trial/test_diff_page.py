"""Diff view of two trials."""

import json
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Cell, Trial
from toolbench.lab.results.trial.bodies import partial_bodies
from toolbench.lab.results.trial.diff_page import MAX_TURNS, DiffPage, get_diff_page
from toolbench.lab.traces.code_view import MAX_LINES

pytestmark = pytest.mark.django_db

READ_CALL: JsonObject = {"name": "state_get", "arguments": '{"request_id": "r1"}', "id": "drawn"}
REFUSED_CALL: JsonObject = {"name": "state_patch", "arguments": {"ops": {"op": "set"}}, "id": "drawn too"}
CORRECTED_CALL: JsonObject = {"name": "state_patch", "arguments": {"ops": [{"op": "set"}]}, "id": "other"}


def make_turn(trial: Trial, number: int, *, call: JsonObject | None = None, text: str = "", **fields: Any) -> None:
    answer = text.encode("utf-8", "surrogatepass")
    facts = {"text": text, "calls": [call] if call else []}
    bodies = {"facts": facts, "response": answer, "request": fields.pop("request", b"")}
    finish_reason = fields.pop("finish_reason", "stop")
    make_step(trial, turn=number, finish_reason=finish_reason, bodies=bodies, response_bytes=len(answer))
    if call:
        tool_data = fields.pop("data", "")
        tool_fields = {"ok": True, "tool_name": call["name"]} | fields
        tool_facts = {"envelope": {"ok": tool_fields["ok"], "data": tool_data}}
        make_step(trial, kind="tool", turn=number, bodies={"facts": tool_facts}, **tool_fields)


def build_request(user_text: str, **more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": user_text}], **more}).encode()


def make_failed_and_passed(cell: Cell) -> tuple[Trial, Trial]:
    """Store a trial that fails after a refused call, and one that passes by sending the corrected call."""
    failed, passed = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    for trial, calls in ((failed, (READ_CALL, REFUSED_CALL)), (passed, (READ_CALL, REFUSED_CALL, CORRECTED_CALL))):
        for number, call in enumerate(calls):
            refused: dict[str, Any] = {"ok": False, "error_code": "ARGUMENT_ERROR"} if call is REFUSED_CALL else {}
            make_turn(trial, number, call=call, **refused)
        make_turn(trial, len(calls), text="Done.")
    recompute_stale_cells()
    return failed, passed


@pytest.fixture
def cell() -> Cell:
    return make_cell(make_config(make_run()), "type_error_recovery")


def list_kinds(page: DiffPage) -> list[str]:
    return [turn.kind for turn in page.turns]


def test_diff_page_marks_the_first_turn_differing_from_nearest_pass(cell: Cell) -> None:
    failed, passed = make_failed_and_passed(cell)
    page = get_diff_page(failed)
    assert page.other == passed
    assert list_kinds(page) == ["same", "same", "differs", "differs"]
    assert [turn.turn for turn in page.turns if turn.is_first_difference] == [2]
    assert [line.text for line in page.turns[2].left_lines if line.mark == "chg"] == ["Done."]
    assert page.turns[2].right is not None
    assert page.turns[2].right.summary == "calls state_patch → ok"
    assert page.turns[3].left is None


def test_diff_page_equates_values_of_own_request_and_marks_wrong_ones(cell: Cell) -> None:
    cell = make_cell(cell.config, "happy_path", instance_kind="drawn")
    failed, passed = make_trial(cell, "fail"), make_trial(cell)
    for trial, values in ((failed, ("é7", "else")), (passed, ("x8", "x8"))):
        for number, value in enumerate(values):
            request = build_request(f"Set it to {value if trial is passed else 'é7'}.")
            make_turn(trial, number, call=READ_CALL | {"arguments": {"value": [value]}}, request=request)
    recompute_stale_cells()
    assert list_kinds(get_diff_page(failed)) == ["alike", "differs"]
    Trial.objects.update(instance_seed=7)
    failed.refresh_from_db()
    assert list_kinds(get_diff_page(failed)) == ["differs", "differs"]


def test_diff_page_compares_the_named_trial_or_gives_a_notice(cell: Cell) -> None:
    failed, passed = make_failed_and_passed(cell)
    assert get_diff_page(passed).other is None
    assert get_diff_page(passed, beside=str(failed.pk)).other == failed
    for garbage in ("0", "x\0", "9" * 40, str(failed.pk)):
        page = get_diff_page(failed, beside=garbage)
        assert page.other == passed
        assert "There is no other trial" in page.notice


def test_diff_page_without_any_passed_trial_gives_a_notice(cell: Cell) -> None:
    page = get_diff_page(make_trial(cell, "fail"))
    notice = "No passed trial of this scenario in this run can be compared. Enter another trial."
    assert (page.other, page.notice) == (None, notice)


def test_diff_page_raw_level_compares_received_bytes(cell: Cell) -> None:
    failed, passed = make_trial(cell, "fail"), make_trial(cell)
    make_turn(failed, 0, text="a\0\ud800" + "x" * 300_000 + "left")
    make_turn(passed, 0, text="a\0\ud800" + "x" * 300_000 + "right")
    make_turn(failed, 1, text="y" * 190_000 + "left")
    make_turn(passed, 1, text="y" * 190_000 + "right")
    recompute_stale_cells()
    page = get_diff_page(failed, level="raw")
    assert list_kinds(page) == ["unread", "differs"]
    assert page.turns[1].left is not None
    assert page.turns[1].left.summary == "HTTP –, 190,004 bytes"
    assert [line.text[-4:] for line in page.turns[1].left_lines if line.mark == "chg"] == ["left"]


def test_diff_page_number_of_queries_does_not_grow_with_turns(
    cell: Cell, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    failed, _ = make_failed_and_passed(cell)
    for number in range(4, MAX_TURNS + 3):
        make_turn(failed, number, text="on and on")
    with django_assert_num_queries(3):
        page = get_diff_page(failed)
    assert page.is_truncated


def test_diff_page_equates_only_whole_values_given_in_the_request(cell: Cell) -> None:
    cell = make_cell(cell.config, "happy_path", instance_kind="drawn")
    failed, passed = make_trial(cell, "fail"), make_trial(cell)
    schema = {"name": "book", "parameters": {"unit": {"enum": ["celsius", "fahrenheit"]}, "note": {"default": "aside"}}}
    arguments_by_side: tuple[JsonObject, JsonObject] = {"city": "Oslo", "order": 4711}, {"city": "Rom", "order": 512}
    shared_arguments: JsonObject = {"unit": "celsius", "nights": 3, "note": ""}
    wrong_arguments_by_turn: tuple[JsonObject, ...] = (
        {"unit": "fahrenheit"},
        {"nights": 12},
        {"note": "aside"},
        {"note": " "},
        {"city": "Os"},
        {},
    )
    for number, wrong_arguments in enumerate(wrong_arguments_by_turn):
        for trial, values, changed_arguments in (
            (failed, arguments_by_side[0], wrong_arguments),
            (passed, arguments_by_side[1], {}),
        ):
            user_text = f"Order {values['order']}: 3 nights in {values['city']}, celsius, fahrenheit on day 12."
            request = build_request(user_text, max_tokens=512, tools=[schema])
            make_turn(
                trial,
                number,
                call=READ_CALL | {"arguments": shared_arguments | values | changed_arguments},
                request=request,
            )
    recompute_stale_cells()
    assert list_kinds(get_diff_page(failed)) == ["differs"] * (len(wrong_arguments_by_turn) - 1) + ["alike"]
    failed.steps.update(request_bytes=300_000)
    assert list_kinds(get_diff_page(failed)) == ["unread"] * len(wrong_arguments_by_turn)


def test_diff_page_marks_an_unusual_finish_reason_as_a_difference(cell: Cell) -> None:
    cell = make_cell(cell.config, "happy_path", instance_kind="drawn")
    failed, passed = make_trial(cell, "fail"), make_trial(cell)
    make_turn(failed, 0, text="The answ", finish_reason="length")
    make_turn(passed, 0, text="The answer is 7.")
    recompute_stale_cells()
    assert list_kinds(get_diff_page(failed)) == ["differs"]


def test_diff_page_leaves_turns_over_the_detail_limit_unread(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_bodies, "MAX_TOTAL_FACTS_BYTES", 4_000)
    failed, passed = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    for number in range(3):
        for trial in (failed, passed):
            make_turn(trial, number, call=READ_CALL, data="z" * 1_500)
    recompute_stale_cells()
    assert list_kinds(get_diff_page(failed)) == ["same", "same", "unread"]


def test_diff_page_marks_a_turn_over_max_lines_as_incomplete(cell: Cell) -> None:
    failed, passed = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    for trial, last_item in ((failed, "left"), (passed, "right")):
        make_turn(trial, 0, call=READ_CALL, data=[1] * (MAX_LINES + 1) + [last_item])
        make_turn(trial, 1, call=READ_CALL, data=[last_item] + [1] * (MAX_LINES + 1))
    recompute_stale_cells()
    page = get_diff_page(failed)
    assert list_kinds(page) == ["unread", "differs"]
    assert all(side and not side.is_complete for side in (page.turns[1].left, page.turns[1].right))


def test_diff_page_turn_without_exchange_links_to_the_tool_result(cell: Cell) -> None:
    failed, passed = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    make_step(failed, kind="tool", ok=True, bodies={"facts": {"envelope": {"ok": True}}})
    make_turn(passed, 0, text="Done.")
    recompute_stale_cells()
    for level in ("parsed", "raw"):
        left = get_diff_page(failed, level=level).turns[0].left
        assert left is not None
        assert left.key == "0.result"


def test_diff_page_does_not_compare_a_trial_without_requests(cell: Cell) -> None:
    unsent, passed = make_trial(cell, "na"), make_trial(cell)
    make_turn(passed, 0, text="Done.")
    recompute_stale_cells()
    for trial, beside in ((unsent, ""), (passed, str(unsent.pk))):
        page = get_diff_page(trial, beside=beside)
        assert (page.other, page.turns) == (None, ())
        assert page.notice.startswith(f"Trial {unsent.pk} sent no request")


def test_diff_page_compares_no_trial_without_bodies(cell: Cell) -> None:
    failed, passed = make_failed_and_passed(cell)
    Trial.objects.filter(pk=passed.pk).update(bodies_removed_at=timezone.now())
    page = get_diff_page(failed)
    assert (page.other, page.notice[:17]) == (None, "No passed trial o")
    for trial, other in ((failed, passed), (Trial.objects.get(pk=passed.pk), failed)):
        page = get_diff_page(trial, beside=str(other.pk))
        assert (page.other, page.turns) == (None, ())
        assert page.notice == f"The bodies of trial {passed.pk} were removed, so it cannot be compared."
