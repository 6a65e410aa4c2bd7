from tests.engine.loop.test_turn_setup import prepare_setup
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


def return_slow_result(_: PreparedCall) -> Outcome:
    return Outcome({"text": "é"}, duration_ms=12.6)


def test_run_emits_events_in_order_with_documented_data() -> None:
    run = run_script(
        build_plan(system="S"),
        [build_calling_answer(build_call(arguments='{"a":1}')), build_answer("Fertig é")],
        return_slow_result,
    )
    assert [(event.type, event.turn) for event in run.events] == [
        ("llm_request_start", 0),
        ("llm_request_end", 0),
        ("tool_call_start", 0),
        ("tool_call_end", 0),
        ("llm_request_start", 1),
        ("llm_request_end", 1),
        ("final", 1),
    ]
    assert run.list_event_data("llm_request_start")[0] == {
        "tool_use_mode": "relaxed",
        "tool_failure_policy": "fatal",
        "tools_enabled": True,
        "messages_count": 2,
        "tools_count": 2,
        "tool_choice": "auto",
        "request_attempts_left": 0,
    }
    ends = run.list_event_data("llm_request_end")
    assert ends[0]["tool_calls"] == [{"id": "c1", "name": "state_get", "arguments_bytes": 7}]
    assert ends[0]["usage"]["input_tokens"] == 10
    assert (ends[1]["finish_reason"], ends[1]["assistant_content_bytes"]) == ("stop", 9)
    assert run.list_event_data("final") == [
        {"assistant_content_bytes": 9, "any_tool_calls_seen": True, "any_tool_success_seen": True}
    ]


def test_tool_call_events_surround_each_call() -> None:
    run = run_script(build_plan(), [build_calling_answer(build_call("state.get", '{"a":')), build_answer()])
    (start,), (end,) = run.list_event_data("tool_call_start"), run.list_event_data("tool_call_end")
    assert start == {"tool_call_id": "c1", "name": "state.get", "arguments_bytes": 5, "parse_status": "invalid_json"}
    assert (end["ok"], end["error_codes"]) == (False, ["ARGUMENTS_JSON_PARSE_ERROR"])
    assert isinstance(end["result"], ToolResult)


def test_tool_call_end_rounds_duration_and_measures_utf8_bytes() -> None:
    run = run_script(build_plan(), [build_calling_answer(build_call()), build_answer()], return_slow_result)
    (end,) = run.list_event_data("tool_call_end")
    assert (end["elapsed_ms"], end["output_replaced"]) == (13, False)
    assert end["output_bytes"] == len(end["result"].content.encode())


def test_retry_without_tools_emits_error_retry_and_new_start() -> None:
    run = run_script(build_plan(fallback_retry_count=2), [build_no_tool_support_error(404), build_answer()])
    assert run.list_event_data("llm_request_error")[0]["status"] == 404
    assert run.list_event_data("llm_request_retry") == [{"tools_enabled": False, "request_attempts_left": 1}]
    retried_start = run.list_event_data("llm_request_start")[1]
    assert (retried_start["tools_count"], retried_start["tool_choice"]) == (0, None)


def test_failing_listener_does_not_end_the_run() -> None:
    def fail(_: Event) -> None:
        raise RuntimeError("broken")

    loop = run_loop(build_plan(), fail)
    ask = next(loop)
    assert isinstance(ask, Ask)
    ask.decoder.feed(build_answer())
    try:
        loop.send(ask.decoder.close())
    except StopIteration as end:
        final_text = end.value.final_text
    assert final_text == "Done."


def test_tool_not_executed_event_has_reason() -> None:
    run = run_script(build_plan(repair_request=True), [build_answer("state_get()"), build_answer()])
    (event,) = run.list_event_data("tool_not_executed")
    assert event["ask_again"] is True
    assert event["reason"]


def test_brief_emitter_leaves_out_request_start() -> None:
    full_events, brief_events = list[Event](), list[Event]()
    for emitter in (
        EventEmitter(prepare_setup(), full_events.append),
        EventEmitter(prepare_setup(), brief_events.append, is_brief=True),
    ):
        emitter.emit_request_start(Request(0, "", b"", has_tools=True), 1, 0)
        emitter.emit_request_retry(0, 1)
    assert [event.type for event in full_events] == ["llm_request_start", "llm_request_retry"]
    assert [event.type for event in brief_events] == ["llm_request_retry"]


def test_delta_listener_emits_text_and_call_deltas() -> None:
    events: list[Event] = []
    listener = EventEmitter(prepare_setup(), events.append).build_delta_listener(2)
    listener(Delta(text="Hi", reasoning="hm"))
    listener(Delta(call_index=0, name="state_get", arguments="{}", is_closed=True))
    assert [(event.type, event.turn) for event in events] == [("llm_delta", 2)] * 2
    assert [event.data for event in events] == [
        {"text": "Hi", "reasoning": "hm"},
        {"call": 0, "name": "state_get", "arguments": "{}", "closed": True},
    ]
