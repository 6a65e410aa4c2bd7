import json
import re
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.scripted_model import build_call
from tests.engine.wire_formats.anthropic.sdk_types import parse_request
from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.anthropic.blocks import INVALID_JSON_KEY
from toolbench.engine.wire_formats.anthropic.changes import WireChanges
from toolbench.engine.wire_formats.anthropic.conversation import OPENING_TEXT, arrange_turns
from toolbench.engine.wire_formats.parse_answer import INTERRUPTED_RESULT

USER = {"role": "user", "content": "Go."}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}


def laid_out(*messages: Message) -> tuple[list[JsonObject], list[str]]:
    """The turns, good by the SDK's types, and the names of what was changed."""
    changes = WireChanges()
    turns = arrange_turns(list(messages), changes)
    body = {"model": "m", "max_tokens": 1, "messages": turns}
    assert parse_request(body) == body
    return turns, [change.name for change in changes.list_changes()]


def text(said: str) -> JsonObject:
    return {"type": "text", "text": said}


def use(call_id: str, name: str = "state_get", **given: Any) -> JsonObject:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str, content: str = "{}", **more: Any) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def calling(*calls: JsonObject, said: str = "", **more: Any) -> Message:
    return {"role": "assistant", "content": said, "tool_calls": list(calls), **more}


def told(call_id: str, content: str = "{}") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_all_results_stand_in_one_user_turn_before_its_text() -> None:
    calls = calling(build_call(call_id="a"), build_call(call_id="b"), said="Both.")
    turns, changes = laid_out(USER, calls, told("b", "2"), {"role": "user", "content": "Well?"}, told("a", "1"))
    assert turns[1]["content"] == [text("Both."), use("a"), use("b")]
    assert turns[2] == {"role": "user", "content": [result("a", "1"), result("b", "2"), text("Well?")]}
    assert changes == []


def test_a_missing_result_is_made_up_as_interrupted() -> None:
    for after in ([], [USER], [{"role": "assistant", "content": "Done."}, USER]):
        turns, changes = laid_out(USER, calling(build_call(call_id="a")), *after)
        assert turns[2]["content"][0] == result("a", INTERRUPTED_RESULT, is_error=True)
        assert changes == ["missing_result_added"]


def test_a_result_that_says_it_failed_is_marked_as_an_error() -> None:
    failed = json.dumps({"ok": False, "tool_name": "state_get", "errors": []})
    turns, _ = laid_out(
        USER, calling(build_call(call_id="a"), build_call(call_id="b")), told("a", failed), told("b", "{}")
    )
    assert [block.get("is_error") for block in turns[2]["content"]] == [True, None]


def test_a_result_nobody_waits_for_is_told_as_text() -> None:
    turns, changes = laid_out(USER, told("x", "late"), calling(build_call(call_id="a")), told("a"), told("a", "again"))
    assert turns[0]["content"] == [text("Go."), text("late")]
    assert turns[2]["content"] == [result("a"), text("again")]
    assert changes == ["orphan_result_as_text"] * 2


def test_equal_roles_are_merged_and_blank_texts_left_out() -> None:
    blank = {"role": "assistant", "content": " \n"}
    turns, _ = laid_out(USER, blank, {"role": "user", "content": [text(""), text("On.")]}, blank)
    assert turns == [{"role": "user", "content": [text("Go."), text("On.")]}]
    turns, _ = laid_out(USER, {"role": "assistant", "content": "A"}, {"role": "assistant", "content": "B"})
    assert turns[1]["content"] == [text("A"), text("B")]


def test_the_user_speaks_first() -> None:
    for messages in ([], [{"role": "assistant", "content": "Hello."}]):
        turns, changes = laid_out(*messages)
        assert turns[0] == {"role": "user", "content": [text(OPENING_TEXT)]}
        assert changes == ["first_user_added"]


def test_a_last_answer_does_not_end_in_white_space() -> None:
    turns, _ = laid_out(USER, {"role": "assistant", "content": "Half a \n"})
    assert turns[-1]["content"] == [text("Half a")]
    turns, _ = laid_out(USER, {"role": "assistant", "content": "Half a \n"}, USER)
    assert turns[1]["content"] == [text("Half a \n")]


def test_a_system_text_in_the_middle_is_said_by_the_user() -> None:
    turns, changes = laid_out(USER, {"role": "system", "content": "Be brief."})
    assert turns == [{"role": "user", "content": [text("Go."), text("Be brief.")]}]
    assert changes == ["midturn_system_folded"]


def test_thinking_goes_back_unchanged_and_first() -> None:
    blocks = [THOUGHT, HIDDEN, text("Well. "), use("a", at=1), {**use("b"), "caller": {"type": "direct"}}]
    answer = calling(build_call(arguments='{"at":1}', call_id="a"), said="Well. ", content_blocks=blocks)
    turns, changes = laid_out(USER, {**answer, "reasoning_content": "Hm."}, told("a"))
    assert turns[1]["content"] == blocks[:4]  # the second call was not kept
    assert changes == []


def test_a_block_nobody_knows_goes_back_as_it_came() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    answer = {"role": "assistant", "content": "", "content_blocks": [search]}
    assert laid_out(USER, answer)[0][1]["content"] == [search]


def test_a_text_that_a_transform_changed_is_said_in_its_new_words() -> None:
    blocks = [THOUGHT, text("<tag>x</tag>"), text(" y")]
    answer = calling(build_call(call_id="a"), said="y", content_blocks=blocks)
    assert laid_out(USER, answer, told("a"))[0][1]["content"] == [THOUGHT, text("y"), use("a")]


def test_thoughts_without_a_signature_stay_behind() -> None:
    turns, changes = laid_out(USER, {"role": "assistant", "content": "Done.", "reasoning_content": "Hm."}, USER)
    assert turns[1]["content"] == [text("Done.")]
    assert changes == ["unsigned_reasoning_left_out"]


def test_arguments_that_are_no_object_travel_wrapped() -> None:
    turns, changes = laid_out(
        USER, calling(build_call(arguments='{"a":', call_id="a"), build_call(arguments="", call_id="b"))
    )
    assert [block["input"] for block in turns[1]["content"]] == [{INVALID_JSON_KEY: '{"a":'}, {}]
    assert "invalid_arguments_wrapped" in changes


def test_ids_are_mapped_to_the_pattern_alike_in_calls_and_results() -> None:
    kimi = "functions.state_get:0"
    turns, changes = laid_out(USER, calling(build_call(call_id=kimi)), told(kimi, "1"))
    sent = turns[1]["content"][0]["id"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", sent)
    assert turns[2]["content"] == [result(sent, "1")]
    assert changes == ["call_id_mapped"]


def test_an_id_used_in_two_turns_travels_as_two() -> None:
    once = [calling(build_call(call_id="tc_1")), told("tc_1")]
    turns, _ = laid_out(USER, *once, *once, *once)
    assert [turn["content"][0]["id"] for turn in turns[1::2]] == ["tc_1", "tc_1_2", "tc_1_3"]
    assert [turn["content"][0]["tool_use_id"] for turn in turns[2::2]] == ["tc_1", "tc_1_2", "tc_1_3"]


def test_images_travel_as_blocks() -> None:
    urls = ["https://example.org/a.png", "data:image/png;base64,AAAA"]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    sources = [block["source"] for block in laid_out({"role": "user", "content": parts})[0][0]["content"]]
    assert sources == [
        {"type": "url", "url": urls[0]},
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
    ]


IDS = st.sampled_from(["a", "b", "functions.f:0", ""])
CALLS = st.lists(IDS, max_size=3).map(lambda ids: calling(*(build_call(call_id=item) for item in ids)))
MESSAGES = st.one_of(
    st.sampled_from([USER, {"role": "assistant", "content": "Well. "}, {"role": "system", "content": "S"}]),
    st.just({"role": "user", "content": " "}),
    CALLS,
    IDS.map(told),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(MESSAGES, max_size=8))
def test_any_conversation_keeps_the_rules(messages: list[Message]) -> None:
    turns, _ = laid_out(*messages)
    roles = [turn["role"] for turn in turns]
    assert roles[0] == "user"
    assert all(item != next_one for item, next_one in pairwise(roles))
    used = [block["id"] for turn in turns for block in turn["content"] if block["type"] == "tool_use"]
    assert len(used) == len(set(used))
    for place, turn in enumerate(turns):
        calls = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        following = turns[place + 1]["content"] if calls else []
        assert [block["tool_use_id"] for block in following[: len(calls)]] == calls
        assert all(block["type"] != "tool_result" for block in following[len(calls) :])
