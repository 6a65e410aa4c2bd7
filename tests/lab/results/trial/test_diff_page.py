"""Tests of the diff view of two trials."""

import json
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Cell, Trial
from toolbench.lab.results.trial.bodies import partial_bodies
from toolbench.lab.results.trial.diff_page import MAX_TURNS, DiffPage, get_diff_page
from toolbench.lab.traces.code_view import MAX_LINES

pytestmark = pytest.mark.django_db

READ: JsonObject = {"name": "state_get", "arguments": '{"request_id": "r1"}', "id": "drawn"}
LONE: JsonObject = {"name": "state_patch", "arguments": {"ops": {"op": "set"}}, "id": "drawn too"}
LIST: JsonObject = {"name": "state_patch", "arguments": {"ops": [{"op": "set"}]}, "id": "other"}


def make_turn(trial: Trial, number: int, *, call: JsonObject | None = None, text: str = "", **tool: Any) -> None:
    answer = text.encode("utf-8", "surrogatepass")
    facts = {"text": text, "calls": [call] if call else []}
    bodies = {"facts": facts, "response": answer, "request": tool.pop("request", b"")}
    finish_reason = tool.pop("finish_reason", "stop")
    make_step(trial, turn=number, finish_reason=finish_reason, bodies=bodies, response_bytes=len(answer))
    if call:
        data = tool.pop("data", "")
        ends = {"ok": True, "tool_name": call["name"]} | tool
        gave = {"envelope": {"ok": ends["ok"], "data": data}}
        make_step(trial, kind="tool", turn=number, bodies={"facts": gave}, **ends)


def build_request(user_text: str, **more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": user_text}], **more}).encode()


def make_failed_and_passed(cell: Cell) -> tuple[Trial, Trial]:
    """Store a trial that fails after a refused call, and one that passes by sending the corrected call."""
    bad, good = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    for one, calls in ((bad, (READ, LONE)), (good, (READ, LONE, LIST))):
        for number, call in enumerate(calls):
            refused: dict[str, Any] = {"ok": False, "error_code": "ARGUMENT_ERROR"} if call is LONE else {}
            make_turn(one, number, call=call, **refused)
        make_turn(one, len(calls), text="Done.")
    recompute_stale_cells()
    return bad, good


@pytest.fixture
def cell() -> Cell:
    return make_cell(make_config(make_run()), "type_error_recovery")


def list_kinds(page: DiffPage) -> list[str]:
    return [turn.kind for turn in page.turns]


def test_nearest_pass_first_differing_turn_is_marked(cell: Cell) -> None:
    bad, good = make_failed_and_passed(cell)
    page = get_diff_page(bad)
    assert page.other == good
    assert list_kinds(page) == ["same", "same", "differs", "differs"]
    assert [turn.turn for turn in page.turns if turn.is_first_difference] == [2]
    assert [line.text for line in page.turns[2].left_lines if line.mark == "chg"] == ["Done."]
    assert page.turns[2].right is not None
    assert page.turns[2].right.summary == "calls state_patch → ok"
    assert page.turns[3].left is None


def test_values_from_own_request_are_alike_and_wrong_value_differs(cell: Cell) -> None:
    cell = make_cell(cell.config, "happy_path", instance_kind="drawn")
    bad, good = make_trial(cell, "fail"), make_trial(cell)
    for one, values in ((bad, ("é7", "else")), (good, ("x8", "x8"))):
        for number, value in enumerate(values):
            asked = build_request(f"Set it to {value if one is good else 'é7'}.")
            make_turn(one, number, call=READ | {"arguments": {"value": [value]}}, request=asked)
    recompute_stale_cells()
    assert list_kinds(get_diff_page(bad)) == ["alike", "differs"]
    Trial.objects.update(instance_seed=7)
    bad.refresh_from_db()
    assert list_kinds(get_diff_page(bad)) == ["differs", "differs"]


def test_requested_trial_is_compared_and_unknown_trial_gives_notice(cell: Cell) -> None:
    bad, good = make_failed_and_passed(cell)
    assert get_diff_page(good).other is None
    assert get_diff_page(good, beside=str(bad.pk)).other == bad
    for garbage in ("0", "x\0", "9" * 40, str(bad.pk)):
        page = get_diff_page(bad, beside=garbage)
        assert page.other == good
        assert "There is no other trial" in page.notice


def test_failed_trial_without_any_pass_gives_notice(cell: Cell) -> None:
    page = get_diff_page(make_trial(cell, "fail"))
    assert (page.other, page.notice) == (None, "No trial of this scenario passed in this run. Enter another trial.")


def test_raw_level_compares_received_bytes_with_nul_and_surrogates(cell: Cell) -> None:
    bad, good = make_trial(cell, "fail"), make_trial(cell)
    make_turn(bad, 0, text="a\0\ud800" + "x" * 300_000 + "left")
    make_turn(good, 0, text="a\0\ud800" + "x" * 300_000 + "right")
    make_turn(bad, 1, text="y" * 190_000 + "left")
    make_turn(good, 1, text="y" * 190_000 + "right")
    recompute_stale_cells()
    page = get_diff_page(bad, level="raw")
    assert list_kinds(page) == ["unread", "differs"]
    assert page.turns[1].left is not None
    assert page.turns[1].left.summary == "HTTP –, 190,004 bytes"
    assert [line.text[-4:] for line in page.turns[1].left_lines if line.mark == "chg"] == ["left"]


def test_the_number_of_queries_does_not_grow_with_turns(
    cell: Cell, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    bad, _ = make_failed_and_passed(cell)
    for number in range(4, MAX_TURNS + 3):
        make_turn(bad, number, text="on and on")
    with django_assert_num_queries(3):
        page = get_diff_page(bad)
    assert page.is_truncated


def test_values_only_in_schema_options_or_word_parts_count_as_not_given(cell: Cell) -> None:
    cell = make_cell(cell.config, "happy_path", instance_kind="drawn")
    bad, good = make_trial(cell, "fail"), make_trial(cell)
    schema = {"name": "book", "parameters": {"unit": {"enum": ["celsius", "fahrenheit"]}, "note": {"default": "aside"}}}
    given: tuple[JsonObject, JsonObject] = {"city": "Oslo", "order": 4711}, {"city": "Rom", "order": 512}
    right: JsonObject = {"unit": "celsius", "nights": 3, "note": ""}
    wrong: tuple[JsonObject, ...] = (
        {"unit": "fahrenheit"},
        {"nights": 12},
        {"note": "aside"},
        {"note": " "},
        {"city": "Os"},
        {},
    )
    for number, slip in enumerate(wrong):
        for one, values, slipped in ((bad, given[0], slip), (good, given[1], {})):
            words = f"Order {values['order']}: 3 nights in {values['city']}, celsius, fahrenheit on day 12."
            asked = build_request(words, max_tokens=512, tools=[schema])
            make_turn(one, number, call=READ | {"arguments": right | values | slipped}, request=asked)
    recompute_stale_cells()
    assert list_kinds(get_diff_page(bad)) == ["differs"] * (len(wrong) - 1) + ["alike"]
    bad.steps.update(request_bytes=300_000)
    assert list_kinds(get_diff_page(bad)) == ["unread"] * len(wrong)


def test_answer_with_unusual_finish_reason_differs(cell: Cell) -> None:
    cell = make_cell(cell.config, "happy_path", instance_kind="drawn")
    bad, good = make_trial(cell, "fail"), make_trial(cell)
    make_turn(bad, 0, text="The answ", finish_reason="length")
    make_turn(good, 0, text="The answer is 7.")
    recompute_stale_cells()
    assert list_kinds(get_diff_page(bad)) == ["differs"]


def test_equal_turns_with_too_many_detail_bytes_are_unread(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_bodies, "MAX_TOTAL_FACTS_BYTES", 4_000)
    bad, good = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    for number in range(3):
        for one in (bad, good):
            make_turn(one, number, call=READ, data="z" * 1_500)
    recompute_stale_cells()
    assert list_kinds(get_diff_page(bad)) == ["same", "same", "unread"]


def test_turn_longer_than_max_lines_is_marked_incomplete(cell: Cell) -> None:
    bad, good = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    for one, last in ((bad, "left"), (good, "right")):
        make_turn(one, 0, call=READ, data=[1] * (MAX_LINES + 1) + [last])
        make_turn(one, 1, call=READ, data=[last] + [1] * (MAX_LINES + 1))
    recompute_stale_cells()
    page = get_diff_page(bad)
    assert list_kinds(page) == ["unread", "differs"]
    assert all(side and not side.is_complete for side in (page.turns[1].left, page.turns[1].right))


def test_turn_without_exchange_links_to_tool_result(cell: Cell) -> None:
    bad, good = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    make_step(bad, kind="tool", ok=True, bodies={"facts": {"envelope": {"ok": True}}})
    make_turn(good, 0, text="Done.")
    recompute_stale_cells()
    for level in ("parsed", "raw"):
        left = get_diff_page(bad, level=level).turns[0].left
        assert left is not None
        assert left.key == "0.result"


def test_trial_without_requests_is_not_compared(cell: Cell) -> None:
    unsent, good = make_trial(cell, "na"), make_trial(cell)
    make_turn(good, 0, text="Done.")
    recompute_stale_cells()
    for one, beside in ((unsent, ""), (good, str(unsent.pk))):
        page = get_diff_page(one, beside=beside)
        assert (page.other, page.turns) == (None, ())
        assert page.notice.startswith(f"Trial {unsent.pk} sent no request")
