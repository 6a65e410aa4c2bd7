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
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}


def arrange(*messages: Message) -> tuple[list[JsonObject], list[str]]:
    """Return the turns, checked by the SDK's types, and the names of the changes."""
    changes = WireChanges()
    turns = arrange_turns(list(messages), changes)
    body = {"model": "m", "max_tokens": 1, "messages": turns}
    assert parse_request(body) == body
    return turns, [change.name for change in changes.list_changes()]


def build_text(content: str) -> JsonObject:
    return {"type": "text", "text": content}


def build_tool_use(call_id: str, name: str = "state_get", **arguments: Any) -> JsonObject:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def build_tool_result(call_id: str, content: str = "{}", **more: Any) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def build_calling_message(*calls: JsonObject, content: str = "", **more: Any) -> Message:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def build_result_message(call_id: str, content: str = "{}") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_arrange_turns_puts_results_in_one_user_turn_before_its_text() -> None:
    calls = build_calling_message(build_call(call_id="a"), build_call(call_id="b"), content="Both.")
    turns, changes = arrange(
        USER,
        calls,
        build_result_message("b", "2"),
        {"role": "user", "content": "Well?"},
        build_result_message("a", "1"),
    )
    assert turns[1]["content"] == [build_text("Both."), build_tool_use("a"), build_tool_use("b")]
    assert turns[2] == {
        "role": "user",
        "content": [build_tool_result("a", "1"), build_tool_result("b", "2"), build_text("Well?")],
    }
    assert changes == []


def test_arrange_turns_adds_interrupted_result_for_missing_one() -> None:
    for following in ([], [USER], [{"role": "assistant", "content": "Done."}, USER]):
        turns, changes = arrange(USER, build_calling_message(build_call(call_id="a")), *following)
        assert turns[2]["content"][0] == build_tool_result("a", INTERRUPTED_RESULT, is_error=True)
        assert changes == ["missing_result_added"]


def test_arrange_turns_marks_failed_result_as_error() -> None:
    failed = json.dumps({"ok": False, "tool_name": "state_get", "errors": []})
    turns, _ = arrange(
        USER,
        build_calling_message(build_call(call_id="a"), build_call(call_id="b")),
        build_result_message("a", failed),
        build_result_message("b", "{}"),
    )
    assert [block.get("is_error") for block in turns[2]["content"]] == [True, None]


def test_arrange_turns_renders_result_without_call_as_text() -> None:
    turns, changes = arrange(
        USER,
        build_result_message("x", "late"),
        build_calling_message(build_call(call_id="a")),
        build_result_message("a"),
        build_result_message("a", "again"),
    )
    assert turns[0]["content"] == [build_text("Go."), build_text("late")]
    assert turns[2]["content"] == [build_tool_result("a"), build_text("again")]
    assert changes == ["orphan_result_as_text"] * 2


def test_arrange_turns_merges_equal_roles_and_drops_blank_texts() -> None:
    blank = {"role": "assistant", "content": " \n"}
    turns, _ = arrange(USER, blank, {"role": "user", "content": [build_text(""), build_text("On.")]}, blank)
    assert turns == [{"role": "user", "content": [build_text("Go."), build_text("On.")]}]
    turns, _ = arrange(USER, {"role": "assistant", "content": "A"}, {"role": "assistant", "content": "B"})
    assert turns[1]["content"] == [build_text("A"), build_text("B")]


def test_arrange_turns_begins_with_a_user_turn() -> None:
    for messages in ([], [{"role": "assistant", "content": "Hello."}]):
        turns, changes = arrange(*messages)
        assert turns[0] == {"role": "user", "content": [build_text(OPENING_TEXT)]}
        assert changes == ["first_user_added"]


def test_arrange_turns_strips_end_of_last_answer_only() -> None:
    turns, _ = arrange(USER, {"role": "assistant", "content": "Half a \n"})
    assert turns[-1]["content"] == [build_text("Half a")]
    turns, _ = arrange(USER, {"role": "assistant", "content": "Half a \n"}, USER)
    assert turns[1]["content"] == [build_text("Half a \n")]


def test_arrange_turns_renders_later_system_message_as_user_text() -> None:
    turns, changes = arrange(USER, {"role": "system", "content": "Be brief."})
    assert turns == [{"role": "user", "content": [build_text("Go."), build_text("Be brief.")]}]
    assert changes == ["midturn_system_folded"]


def test_arrange_turns_sends_thinking_unchanged_before_kept_calls() -> None:
    blocks = [
        THINKING,
        HIDDEN,
        build_text("Well. "),
        build_tool_use("a", at=1),
        {**build_tool_use("b"), "caller": {"type": "direct"}},
    ]
    answer = build_calling_message(
        build_call(arguments='{"at":1}', call_id="a"), content="Well. ", content_blocks=blocks
    )
    turns, changes = arrange(USER, {**answer, "reasoning_content": "Hm."}, build_result_message("a"))
    assert turns[1]["content"] == blocks[:4]  # the second call was not kept
    assert changes == []


def test_arrange_turns_sends_unknown_block_unchanged() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    answer = {"role": "assistant", "content": "", "content_blocks": [search]}
    assert arrange(USER, answer)[0][1]["content"] == [search]


def test_arrange_turns_uses_text_changed_by_transform() -> None:
    blocks = [THINKING, build_text("<tag>x</tag>"), build_text(" y")]
    answer = build_calling_message(build_call(call_id="a"), content="y", content_blocks=blocks)
    assert arrange(USER, answer, build_result_message("a"))[0][1]["content"] == [
        THINKING,
        build_text("y"),
        build_tool_use("a"),
    ]


def test_arrange_turns_drops_reasoning_without_signature() -> None:
    turns, changes = arrange(USER, {"role": "assistant", "content": "Done.", "reasoning_content": "Hm."}, USER)
    assert turns[1]["content"] == [build_text("Done.")]
    assert changes == ["unsigned_reasoning_left_out"]


def test_arrange_turns_wraps_arguments_that_are_no_object() -> None:
    turns, changes = arrange(
        USER, build_calling_message(build_call(arguments='{"a":', call_id="a"), build_call(arguments="", call_id="b"))
    )
    assert [block["input"] for block in turns[1]["content"]] == [{INVALID_JSON_KEY: '{"a":'}, {}]
    assert "invalid_arguments_wrapped" in changes


def test_arrange_turns_maps_ids_alike_in_calls_and_results() -> None:
    kimi = "functions.state_get:0"
    turns, changes = arrange(USER, build_calling_message(build_call(call_id=kimi)), build_result_message(kimi, "1"))
    sent_id = turns[1]["content"][0]["id"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", sent_id)
    assert turns[2]["content"] == [build_tool_result(sent_id, "1")]
    assert changes == ["call_id_mapped"]


def test_arrange_turns_renames_id_that_is_used_again() -> None:
    turn_messages = [build_calling_message(build_call(call_id="tc_1")), build_result_message("tc_1")]
    turns, _ = arrange(USER, *turn_messages, *turn_messages, *turn_messages)
    assert [turn["content"][0]["id"] for turn in turns[1::2]] == ["tc_1", "tc_1_2", "tc_1_3"]
    assert [turn["content"][0]["tool_use_id"] for turn in turns[2::2]] == ["tc_1", "tc_1_2", "tc_1_3"]


def test_arrange_turns_renders_images_as_blocks() -> None:
    urls = ["https://example.org/a.png", "data:image/png;base64,AAAA"]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    sources = [block["source"] for block in arrange({"role": "user", "content": parts})[0][0]["content"]]
    assert sources == [
        {"type": "url", "url": urls[0]},
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
    ]


IDS = st.sampled_from(["a", "b", "functions.f:0", ""])
CALLS = st.lists(IDS, max_size=3).map(lambda ids: build_calling_message(*(build_call(call_id=item) for item in ids)))
MESSAGES = st.one_of(
    st.sampled_from([USER, {"role": "assistant", "content": "Well. "}, {"role": "system", "content": "S"}]),
    st.just({"role": "user", "content": " "}),
    CALLS,
    IDS.map(build_result_message),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(MESSAGES, max_size=8))
def test_arrange_turns_any_conversation_follows_the_rules(messages: list[Message]) -> None:
    turns, _ = arrange(*messages)
    roles = [turn["role"] for turn in turns]
    assert roles[0] == "user"
    assert all(item != next_one for item, next_one in pairwise(roles))
    tool_use_ids = [block["id"] for turn in turns for block in turn["content"] if block["type"] == "tool_use"]
    assert len(tool_use_ids) == len(set(tool_use_ids))
    for index, turn in enumerate(turns):
        calls = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        following = turns[index + 1]["content"] if calls else []
        assert [block["tool_use_id"] for block in following[: len(calls)]] == calls
        assert all(block["type"] != "tool_result" for block in following[len(calls) :])
