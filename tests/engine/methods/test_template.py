import json
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.scripted_model import build_plan, run_script
from tests.engine.wire_formats.test_completions import build_llama_answer, render_answer
from toolbench.engine.errors import PlanError
from toolbench.engine.events import EndReason
from toolbench.engine.formats import TextCall, render
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS
from toolbench.engine.methods.template import TemplateMethod
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject

HISTORY: tuple[JsonObject, ...] = (
    {"role": "user", "content": "Before?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "e1", "type": "function", "function": {"name": "state_get", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "e1", "content": "nothing"},
    {"role": "assistant", "content": "Nothing yet."},
)


def render_calling_answer(name: str, arguments: JsonObject, format: str = "hermes") -> bytes:
    return render_answer(render([TextCall(name, arguments)], format=format))


def build_template_plan(**policy: Any) -> Any:
    return build_plan(system="Be brief.", method="template", **policy)


@pytest.mark.parametrize("text_format", TURN_SPECS)
def test_template_method_misses_no_end_marker_that_is_a_stop_text(text_format: str) -> None:
    text = render([TextCall("f", {"a": 1}, "functions.f:0")], format=text_format)
    end = min((text.find(stop) for stop in TURN_SPECS[text_format].stop_texts if stop in text), default=len(text))
    tool = ToolDefinition("f", "F.", {"type": "object", "properties": {"a": {"type": "integer"}}})
    parsed = TemplateMethod(text_format).parse_answer({"content": text[:end]}, [tool])
    assert (len(parsed.calls), parsed.findings) == (1, ())


def test_template_method_reports_missing_end_marker_that_is_no_stop_text() -> None:
    for text_format, text in (("hermes", '<tool_call>{"name": "f"}'), ("llama3_json", '<function=f>{"a": 1}')):
        parsed = TemplateMethod(text_format).parse_answer({"content": text}, [ToolDefinition("f")])
        assert [finding.code for finding in parsed.findings] == ["closer_missing"]


@pytest.mark.parametrize(("finish_reason", "codes"), [("stop", []), ("length", ["closer_missing"])])
def test_template_method_reports_missing_stop_text_at_token_limit(finish_reason: str, codes: list[str]) -> None:
    text = render([TextCall("state_get", {"a": 1})], format="harmony").partition("<|call|>")[0]
    plan = build_template_plan(text_format="harmony")
    turn = run_script(plan, [render_answer(text, finish_reason), render_answer("Done.")]).ended.turns[0].answer
    assert turn is not None
    assert [finding.code for finding in turn.findings if finding.code == "closer_missing"] == codes


@pytest.mark.parametrize("stop", ["END", ["END", "<|im_end|>"]])
def test_template_method_sends_requested_stop_texts_too(stop: str | list[str]) -> None:
    run = run_script(build_template_plan(request_overrides={"stop": stop}), [render_answer("Done.")])
    assert run.bodies[0]["stop"] == ["<|im_end|>", "END"]


def test_template_method_sends_no_more_than_four_stop_texts() -> None:
    run = run_script(build_template_plan(request_overrides={"stop": ["A", "B", "C", "D"]}), [render_answer("Done.")])
    assert run.bodies[0]["stop"] == ["<|im_end|>", "A", "B", "C"]
    (change,) = run.ended.turns[0].request.changes
    assert (change.name, change.path, change.before) == ("limit_stop_texts", "$.stop", '["D"]')


def test_template_method_sends_one_prompt_and_reads_calls_from_text() -> None:
    run = run_script(build_template_plan(), [render_calling_answer("state_get", {}), render_answer("Done.")])
    first, second = run.bodies
    assert first.keys() == {"model", "prompt", "stop"}
    assert first["stop"] == ["<|im_end|>"]
    assert first["prompt"].startswith("<|im_start|>system\nBe brief.\n\n# Tools")
    assert second["prompt"].startswith(first["prompt"])
    assert '<tool_call>\n{"name": "state_get", "arguments": {}}\n</tool_call><|im_end|>' in second["prompt"]
    assert '<tool_response>\n{"ok":true' in second["prompt"]
    assert (run.ended.end, run.ended.final_text, len(run.ran)) == (EndReason.FINAL, "Done.", 1)
    assert [record.answer.method_used for record in run.ended.turns if record.answer] == ["template", "text"]


@pytest.mark.parametrize("name", TURN_SPECS)
def test_template_of_every_format_runs_a_conversation_with_calls(name: str) -> None:
    call = {"ops": [{"op": "set"}]}
    script = [
        render_calling_answer("state_get", {}, name),
        render_calling_answer("state_patch", call, name),
        render_answer("Done."),
    ]
    run = run_script(replace(build_template_plan(text_format=name), history=HISTORY), script)
    assert [call.name for call in run.ran] == ["state_get", "state_patch"]
    assert run.ran[1].arguments == call
    assert run.ended.final_text == "Done."
    assert "Nothing yet." in run.bodies[0]["prompt"]


def test_template_prompt_without_tools_has_no_tool_section() -> None:
    run = run_script(build_template_plan(tool_use_mode="disabled"), [render_answer("Hello.")])
    assert run.bodies[0]["prompt"] == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n"
    )


def test_template_prompt_with_tool_choice_none_has_no_tool_section() -> None:
    assert (
        "# Tools"
        not in run_script(build_template_plan(tool_choice="none"), [render_answer("Hello.")]).bodies[0]["prompt"]
    )


def test_truncated_call_is_reported_and_not_executed() -> None:
    run = run_script(
        build_template_plan(), [render_answer('<tool_call>\n{"name": "state_patch", "arguments": {"op', "length")]
    )
    answer = run.ended.turns[0].answer
    assert answer is not None
    assert (run.ran, answer.method_used) == ([], "text")
    assert [finding.code for finding in answer.findings] == ["call_cut", "parse_error"]
    assert answer.notice == "Tool not executed: the text ends inside a call."
    assert [(error.mode, error.error) for error in answer.parse_errors] == [("template", "The text ends inside a call")]


def test_reasoning_is_separated_and_sent_again_while_tools_run() -> None:
    thinking = render_answer(
        "<think>\nLook first.\n</think>\n\n" + render([TextCall("state_get", {})], format="hermes")
    )
    run = run_script(build_template_plan(), [thinking, render_answer("Done.")])
    message = next(message for message in run.ended.history if message["role"] == "assistant")
    assert (message["content"], message["reasoning_content"].strip()) == ("", "Look first.")
    assert "Look first." in run.bodies[1]["prompt"]


def test_prompt_has_the_first_reasoning_field_that_is_not_empty() -> None:
    calls = [{"id": "call_1", "function": {"name": "state_get", "arguments": "{}"}}]
    answer = {"role": "assistant", "reasoning_content": "", "reasoning": "Look first.", "tool_calls": calls}
    messages = [answer, {"role": "tool", "tool_call_id": "call_1", "content": "4 degrees"}]
    prepared = TemplateMethod().prepare_body({"messages": messages}, [], "auto")
    assert "Look first." in prepared["prompt"]


def test_parse_answer_keeps_reasoning_field_before_reasoning_in_text() -> None:
    message = {"role": "assistant", "content": "<think>\nSecond.\n</think>\nDone.", "reasoning_content": "First."}
    answer = TemplateMethod().parse_answer(message, ())
    assert answer.message == {**message, "content": "Done.", "reasoning_content": "First.\nSecond."}


def test_template_method_can_use_llama_cpp_endpoint() -> None:
    plan = build_template_plan(prompt_endpoint="llama", llm_options_defaults={"max_tokens": 64})
    run = run_script(plan, [json.dumps(build_llama_answer("Done.")).encode()])
    assert (run.ended.final_text, run.bodies[0]["n_predict"]) == ("Done.", 64)
    assert run.ended.turns[0].request.path == "/completion"


def test_template_prompt_omits_calls_that_were_not_kept() -> None:
    two_calls = render_answer(render([TextCall("state_get", {}), TextCall("state_get", {})], format="hermes"))
    run = run_script(build_template_plan(max_tool_calls_per_turn=1), [two_calls, render_answer("Done.")])
    assert run.bodies[1]["prompt"].count('{"name": "state_get", "arguments": {}}') == 1


def test_template_format_without_turn_tokens_is_refused() -> None:
    with pytest.raises(PlanError, match="turn tokens of the format 'fenced_json' are not known"):
        run_script(build_template_plan(text_format="fenced_json"), [])


def test_template_method_with_anthropic_wire_is_refused() -> None:
    with pytest.raises(PlanError, match="takes no rendered prompt"):
        run_script(replace(build_template_plan(), wire="anthropic"), [])


@pytest.mark.parametrize("ids", [("e1", "e1"), (None, None), ("", None)], ids=["equal", "missing", "blank"])
def test_template_prompt_pairs_results_of_calls_with_one_id_in_order(ids: tuple[str | None, str | None]) -> None:
    call_id, result_id = ids
    calls = [{"id": call_id, "function": {"name": name, "arguments": "{}"}} for name in ("first", "second")]
    results = [{"role": "tool", "tool_call_id": result_id, "content": text} for text in ("one", "two")]
    body = {"messages": [{"role": "assistant", "tool_calls": calls}, *results]}
    prompt = TemplateMethod("kimi_k2").prepare_body(body, [], "auto")["prompt"]
    assert "first<|im_middle|>## Return of functions.first:0\none<|im_end|>" in prompt
    assert "second<|im_middle|>## Return of functions.second:1\ntwo<|im_end|>" in prompt


def test_template_prompt_renders_result_without_call_as_user_text() -> None:
    body = {"messages": [{"role": "tool", "tool_call_id": "gone", "content": "4 degrees"}]}
    prepared = TemplateMethod().prepare_body(body, [], "auto")
    assert prepared["prompt"] == "<|im_start|>user\n4 degrees<|im_end|>\n<|im_start|>assistant\n"
