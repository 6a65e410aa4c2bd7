import json
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.scripted_model import TOOLS, build_plan, run_script
from tests.engine.wire_formats.test_completions import llama_whole, whole
from toolbench.engine.errors import PlanError
from toolbench.engine.events import EndReason
from toolbench.engine.formats import TextCall, render
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS
from toolbench.engine.methods.template import TemplateMethod
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


def calling(name: str, arguments: JsonObject, format: str = "hermes") -> bytes:
    return whole(render([TextCall(name, arguments)], format=format))


def templated(**policy: Any) -> Any:
    return build_plan(system="Be brief.", method="template", **policy)


def test_the_conversation_goes_out_as_one_prompt_and_comes_back_as_calls() -> None:
    played = run_script(templated(), [calling("state_get", {}), whole("Done.")])
    first, second = played.bodies
    assert first.keys() == {"model", "prompt", "stop"}
    assert first["stop"] == ["<|im_end|>"]
    assert first["prompt"].startswith("<|im_start|>system\nBe brief.\n\n# Tools")
    assert second["prompt"].startswith(first["prompt"])
    assert '<tool_call>\n{"name": "state_get", "arguments": {}}\n</tool_call><|im_end|>' in second["prompt"]
    assert '<tool_response>\n{"ok":true' in second["prompt"]
    assert (played.ended.end, played.ended.final_text, len(played.ran)) == (EndReason.FINAL, "Done.", 1)
    assert [record.answer.method_used for record in played.ended.turns if record.answer] == ["template", "text"]


@pytest.mark.parametrize("name", TURN_SPECS)
def test_every_format_with_turns_runs_a_whole_conversation(name: str) -> None:
    call = {"ops": [{"op": "set"}]}
    script = [calling("state_get", {}, name), calling("state_patch", call, name), whole("Done.")]
    played = run_script(replace(templated(text_format=name), history=HISTORY), script)
    assert [call.name for call in played.ran] == ["state_get", "state_patch"]
    assert played.ran[1].arguments == call
    assert played.ended.final_text == "Done."
    assert "Nothing yet." in played.bodies[0]["prompt"]


def test_without_tools_the_prompt_speaks_of_none() -> None:
    played = run_script(templated(tool_use_mode="disabled"), [whole("Hello.")])
    assert played.bodies[0]["prompt"] == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_choice_none_tells_of_no_tools() -> None:
    assert "# Tools" not in run_script(templated(tool_choice="none"), [whole("Hello.")]).bodies[0]["prompt"]


def test_a_cut_call_is_said_and_never_runs() -> None:
    played = run_script(templated(), [whole('<tool_call>\n{"name": "state_patch", "arguments": {"op', "length")])
    answer = played.ended.turns[0].answer
    assert answer is not None
    assert (played.ran, answer.method_used) == ([], "text")
    assert [finding.code for finding in answer.findings] == ["call_cut", "parse_error"]
    assert answer.notice == "Tool not executed: the text ends inside a call."
    assert [(error.mode, error.error) for error in answer.parse_errors] == [("template", "The text ends inside a call")]


def test_thoughts_are_kept_apart_and_told_again_while_tools_run() -> None:
    thinking = whole("<think>\nLook first.\n</think>\n\n" + render([TextCall("state_get", {})], format="hermes"))
    played = run_script(templated(), [thinking, whole("Done.")])
    said = next(message for message in played.ended.history if message["role"] == "assistant")
    assert (said["content"], said["reasoning_content"].strip()) == ("", "Look first.")
    assert "Look first." in played.bodies[1]["prompt"]


def test_llama_cpps_own_endpoint_can_be_chosen() -> None:
    given = templated(prompt_endpoint="llama", llm_options_defaults={"max_tokens": 64})
    played = run_script(given, [json.dumps(llama_whole("Done.")).encode()])
    assert (played.ended.final_text, played.bodies[0]["n_predict"]) == ("Done.", 64)
    assert played.ended.turns[0].request.path == "/completion"


def test_calls_beyond_those_kept_are_not_told_again() -> None:
    both = whole(render([TextCall("state_get", {}), TextCall("state_get", {})], format="hermes"))
    played = run_script(templated(max_tool_calls_per_turn=1), [both, whole("Done.")])
    assert played.bodies[1]["prompt"].count('{"name": "state_get", "arguments": {}}') == 1


def test_a_format_without_turn_tokens_is_refused_before_the_first_request() -> None:
    with pytest.raises(PlanError, match="turn tokens of the format 'fenced_json' are not known"):
        run_script(templated(text_format="fenced_json"), [])


def test_an_endpoint_that_speaks_another_shape_takes_no_prompt() -> None:
    with pytest.raises(PlanError, match="takes no rendered prompt"):
        run_script(replace(templated(), wire="anthropic"), [])


def test_results_of_calls_nobody_made_are_told_as_the_users_words() -> None:
    body = {"messages": [{"role": "tool", "tool_call_id": "gone", "content": "4 degrees"}]}
    shaped = TemplateMethod().prepare_body(body, TOOLS.list_exposed(), [], "auto")
    assert shaped["prompt"] == "<|im_start|>user\n4 degrees<|im_end|>\n<|im_start|>assistant\n"
