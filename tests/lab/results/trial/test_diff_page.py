"""A trial beside another, turn by turn."""

import json
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Cell, Trial
from toolbench.lab.results.trial import partial_bodies
from toolbench.lab.results.trial.diff_page import MAX_TURNS, DiffPage, get_diff_page
from toolbench.lab.traces.code_view import MAX_LINES

pytestmark = pytest.mark.django_db

READ: JsonObject = {"name": "state_get", "arguments": '{"request_id": "r1"}', "id": "drawn"}
LONE: JsonObject = {"name": "state_patch", "arguments": {"ops": {"op": "set"}}, "id": "drawn too"}
LIST: JsonObject = {"name": "state_patch", "arguments": {"ops": [{"op": "set"}]}, "id": "other"}


def turn(trial: Trial, number: int, *, call: JsonObject | None = None, text: str = "", **tool: Any) -> None:
    answer = text.encode("utf-8", "surrogatepass")
    facts = {"text": text, "calls": [call] if call else []}
    bodies = {"facts": facts, "response": answer, "request": tool.pop("request", b"")}
    ended = tool.pop("ended", "stop")
    make_step(trial, turn=number, finish_reason=ended, bodies=bodies, response_bytes=len(answer))
    if call:
        data = tool.pop("data", "")
        ends = {"ok": True, "tool_name": call["name"]} | tool
        gave = {"envelope": {"ok": ends["ok"], "data": data}}
        make_step(trial, kind="tool", turn=number, bodies={"facts": gave}, **ends)


def request(words: str, **more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": words}], **more}).encode()


def pair(cell: Cell) -> tuple[Trial, Trial]:
    """One that gave up after a refused patch, and one that sent it again."""
    bad, good = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    for one, calls in ((bad, (READ, LONE)), (good, (READ, LONE, LIST))):
        for number, call in enumerate(calls):
            refused: dict[str, Any] = {"ok": False, "error_code": "ARGUMENT_ERROR"} if call is LONE else {}
            turn(one, number, call=call, **refused)
        turn(one, len(calls), text="Done.")
    recompute_stale_cells()
    return bad, good


@pytest.fixture
def cell() -> Cell:
    return make_cell(make_config(make_run()), "type_error_recovery")


def kinds(lane: DiffPage) -> list[str]:
    return [turn.kind for turn in lane.turns]


def test_the_first_turn_that_differs_from_the_nearest_pass_is_marked(cell: Cell) -> None:
    bad, good = pair(cell)
    lane = get_diff_page(bad)
    assert lane.other == good
    assert kinds(lane) == ["same", "same", "differs", "differs"]
    assert [turn.turn for turn in lane.turns if turn.first] == [2]
    assert [line.text for line in lane.turns[2].left_lines if line.mark == "chg"] == ["Done."]
    assert lane.turns[2].right is not None
    assert lane.turns[2].right.summary == "calls state_patch → ok"
    assert lane.turns[3].left is None


def test_values_that_each_was_given_are_no_divergence_and_a_wrong_one_is(cell: Cell) -> None:
    cell = make_cell(cell.config, "happy_path", instance_kind="drawn")
    bad, good = make_trial(cell, "fail"), make_trial(cell)
    for one, values in ((bad, ("é7", "else")), (good, ("x8", "x8"))):
        for number, value in enumerate(values):
            asked = request(f"Set it to {value if one is good else 'é7'}.")
            turn(one, number, call=READ | {"arguments": {"value": [value]}}, request=asked)
    recompute_stale_cells()
    assert kinds(get_diff_page(bad)) == ["alike", "differs"]
    Trial.objects.update(instance_seed=7)
    bad.refresh_from_db()
    assert kinds(get_diff_page(bad)) == ["differs", "differs"]


def test_a_trial_that_is_named_is_laid_beside_and_an_unknown_one_is_said(cell: Cell) -> None:
    bad, good = pair(cell)
    assert get_diff_page(good).other is None
    assert get_diff_page(good, beside=str(bad.pk)).other == bad
    for garbage in ("0", "x\0", "9" * 40, str(bad.pk)):
        lane = get_diff_page(bad, beside=garbage)
        assert lane.other == good
        assert "There is no other trial" in lane.notice


def test_without_any_pass_it_says_so(cell: Cell) -> None:
    lane = get_diff_page(make_trial(cell, "fail"))
    assert (lane.other, lane.notice) == (None, "No trial of this scenario passed in its run: name another.")


def test_what_was_received_is_compared_byte_by_byte_whatever_is_in_it(cell: Cell) -> None:
    bad, good = make_trial(cell, "fail"), make_trial(cell)
    turn(bad, 0, text="a\0\ud800" + "x" * 300_000 + "left")
    turn(good, 0, text="a\0\ud800" + "x" * 300_000 + "right")
    turn(bad, 1, text="y" * 190_000 + "left")
    turn(good, 1, text="y" * 190_000 + "right")
    recompute_stale_cells()
    lane = get_diff_page(bad, level="raw")
    assert kinds(lane) == ["unread", "differs"]
    assert lane.turns[1].left is not None
    assert lane.turns[1].left.summary == "HTTP –, 190,004 bytes"
    assert [line.text[-4:] for line in lane.turns[1].left_lines if line.mark == "chg"] == ["left"]


def test_the_number_of_queries_does_not_grow_with_turns(
    cell: Cell, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    bad, _ = pair(cell)
    for number in range(4, MAX_TURNS + 3):
        turn(bad, number, text="on and on")
    with django_assert_num_queries(8):
        lane = get_diff_page(bad)
    assert lane.cut


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
            asked = request(words, max_tokens=512, tools=[schema])
            turn(one, number, call=READ | {"arguments": right | values | slipped}, request=asked)
    recompute_stale_cells()
    assert kinds(get_diff_page(bad)) == ["differs"] * (len(wrong) - 1) + ["alike"]
    bad.steps.update(request_bytes=300_000)
    assert kinds(get_diff_page(bad)) == ["unread"] * len(wrong)


def test_a_text_that_was_cut_is_not_alike_a_whole_one(cell: Cell) -> None:
    cell = make_cell(cell.config, "happy_path", instance_kind="drawn")
    bad, good = make_trial(cell, "fail"), make_trial(cell)
    turn(bad, 0, text="The answ", ended="length")
    turn(good, 0, text="The answer is 7.")
    recompute_stale_cells()
    assert kinds(get_diff_page(bad)) == ["differs"]


def test_equal_trials_do_not_part_where_their_facts_are_too_many(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_bodies, "MAX_TOTAL_FACTS_BYTES", 4_000)
    bad, good = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    for number in range(3):
        for one in (bad, good):
            turn(one, number, call=READ, data="z" * 1_500)
    recompute_stale_cells()
    assert kinds(get_diff_page(bad)) == ["same", "same", "unread"]


def test_only_the_beginning_of_a_long_turn_is_laid_out_and_it_says_so(cell: Cell) -> None:
    bad, good = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    for one, last in ((bad, "left"), (good, "right")):
        turn(one, 0, call=READ, data=[1] * (MAX_LINES + 1) + [last])
        turn(one, 1, call=READ, data=[last] + [1] * (MAX_LINES + 1))
    recompute_stale_cells()
    lane = get_diff_page(bad)
    assert kinds(lane) == ["unread", "differs"]
    assert all(side and not side.whole for side in (lane.turns[1].left, lane.turns[1].right))


def test_a_turn_of_tools_alone_links_to_what_the_tool_gave(cell: Cell) -> None:
    bad, good = make_trial(cell, "fail", instance_seed=1), make_trial(cell, instance_seed=1)
    make_step(bad, kind="tool", ok=True, bodies={"facts": {"envelope": {"ok": True}}})
    turn(good, 0, text="Done.")
    recompute_stale_cells()
    for level in ("parsed", "raw"):
        left = get_diff_page(bad, level=level).turns[0].left
        assert left is not None
        assert left.key == "0.result"


def test_a_trial_of_which_nothing_was_sent_stands_beside_none(cell: Cell) -> None:
    unsent, good = make_trial(cell, "na"), make_trial(cell)
    turn(good, 0, text="Done.")
    recompute_stale_cells()
    for one, beside in ((unsent, ""), (good, str(unsent.pk))):
        lane = get_diff_page(one, beside=beside)
        assert (lane.other, lane.turns) == (None, ())
        assert lane.notice.startswith(f"Nothing was sent of trial {unsent.pk}")
