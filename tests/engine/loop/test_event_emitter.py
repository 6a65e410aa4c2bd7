from tests.engine.loop.test_turn_setup import prepare
from tests.engine.scripted_model import (
    build_answer,
    build_call,
    build_calling_answer,
    build_no_tool_support_error,
    build_plan,
    run_script,
)
from toolbench.engine.events import Ask, Delta, Event, Outcome, PreparedCall, Request, ToolResult
from toolbench.engine.loop.event_emitter import EventEmitter
from toolbench.engine.loop.run import run_loop


def slow(_: PreparedCall) -> Outcome:
    return Outcome({"text": "é"}, duration_ms=12.6)


def test_a_run_is_told_in_the_case_studys_words() -> None:
    played = run_script(
        build_plan(system="S"), [build_calling_answer(build_call(arguments='{"a":1}')), build_answer("Fertig é")], slow
    )
    assert [(event.type, event.turn) for event in played.events] == [
        ("llm_request_start", 0),
        ("llm_request_end", 0),
        ("tool_call_start", 0),
        ("tool_call_end", 0),
        ("llm_request_start", 1),
        ("llm_request_end", 1),
        ("final", 1),
    ]
    assert played.list_event_data("llm_request_start")[0] == {
        "tool_use_mode": "relaxed",
        "tool_failure_policy": "fatal",
        "tools_enabled": True,
        "messages_count": 2,
        "tools_count": 2,
        "tool_choice": "auto",
        "request_attempts_left": 0,
    }
    ended = played.list_event_data("llm_request_end")
    assert ended[0]["tool_calls"] == [{"id": "c1", "name": "state_get", "arguments_bytes": 7}]
    assert ended[0]["usage"]["input_tokens"] == 10
    assert (ended[1]["finish_reason"], ended[1]["assistant_content_bytes"]) == ("stop", 9)
    assert played.list_event_data("final") == [
        {"assistant_content_bytes": 9, "any_tool_calls_seen": True, "any_tool_success_seen": True}
    ]


def test_a_call_is_told_before_and_after() -> None:
    played = run_script(build_plan(), [build_calling_answer(build_call("state.get", '{"a":')), build_answer()])
    (start,), (end,) = played.list_event_data("tool_call_start"), played.list_event_data("tool_call_end")
    assert start == {"tool_call_id": "c1", "name": "state.get", "arguments_bytes": 5, "parse_status": "invalid_json"}
    assert (end["ok"], end["error_codes"]) == (False, ["ARGUMENTS_JSON_PARSE_ERROR"])
    assert isinstance(end["result"], ToolResult)


def test_times_and_sizes_of_results_are_whole_numbers() -> None:
    played = run_script(build_plan(), [build_calling_answer(build_call()), build_answer()], slow)
    (end,) = played.list_event_data("tool_call_end")
    assert (end["elapsed_ms"], end["output_replaced"]) == (13, False)
    assert end["output_bytes"] == len(end["result"].content.encode())


def test_a_retry_without_tools_is_told() -> None:
    played = run_script(build_plan(fallback_retry_count=2), [build_no_tool_support_error(404), build_answer()])
    assert played.list_event_data("llm_request_error")[0]["status"] == 404
    assert played.list_event_data("llm_request_retry") == [{"tools_enabled": False, "request_attempts_left": 1}]
    again = played.list_event_data("llm_request_start")[1]
    assert (again["tools_count"], again["tool_choice"]) == (0, None)


def test_a_listener_that_raises_cannot_end_the_run() -> None:
    def broken(_: Event) -> None:
        raise RuntimeError("broken")

    loop = run_loop(build_plan(), broken)
    ask = next(loop)
    assert isinstance(ask, Ask)
    ask.decoder.feed(build_answer())
    try:
        loop.send(ask.decoder.close())
    except StopIteration as end:
        final_text = end.value.final_text
    assert final_text == "Done."


def test_a_call_that_could_not_run_is_told_with_its_reason() -> None:
    played = run_script(build_plan(repair_request=True), [build_answer("state_get()"), build_answer()])
    (told,) = played.list_event_data("tool_not_executed")
    assert told["ask_again"] is True
    assert told["reason"]


def test_narration_tells_everything_unless_it_is_brief() -> None:
    full_events, brief_events = list[Event](), list[Event]()
    for emitter in (
        EventEmitter(prepare(), full_events.append),
        EventEmitter(prepare(), brief_events.append, is_brief=True),
    ):
        emitter.emit_request_start(Request(0, "", b"", has_tools=True), 1, 0)
        emitter.emit_request_retry(0, 1)
    assert [event.type for event in full_events] == ["llm_request_start", "llm_request_retry"]
    assert [event.type for event in brief_events] == ["llm_request_retry"]


def test_pieces_of_a_stream_are_told_as_text_or_as_a_call() -> None:
    events: list[Event] = []
    heard = EventEmitter(prepare(), events.append).build_delta_listener(2)
    heard(Delta(text="Hi", reasoning="hm"))
    heard(Delta(call_index=0, name="state_get", arguments="{}", is_closed=True))
    assert [(event.type, event.turn) for event in events] == [("llm_delta", 2)] * 2
    assert [event.data for event in events] == [
        {"text": "Hi", "reasoning": "hm"},
        {"call": 0, "name": "state_get", "arguments": "{}", "closed": True},
    ]
