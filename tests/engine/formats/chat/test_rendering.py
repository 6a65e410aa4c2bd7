import itertools
import json
import re
from dataclasses import replace

import pytest

from tests.engine.formats.golden_cases import DATA_FOLDER, WEATHER_TOOL
from toolbench.engine import formats
from toolbench.engine.errors import PlanError
from toolbench.engine.formats import PromptMessage, TextCall, get_turn_spec, parse, render_conversation, render_tools
from toolbench.engine.formats.chat.turn_templates import TURN_SPECS
from toolbench.engine.formats.registry import get_format

CALL = TextCall("get_weather", {"city": "Oslo"}, "call_abc")
OTHER = TextCall("get_weather", {"city": "Rome", "days": 2}, "call_def")
PROMPTS: dict[str, str] = json.loads((DATA_FOLDER / "conversations.json").read_text())
REASONING_FORMATS = [
    name for name, turns in TURN_SPECS.items() if turns.reasoning_frame or get_format(name).reasoning_markers
]
CONVERSATION = (
    PromptMessage("system", "Be brief."),
    PromptMessage("user", "And in Oslo?"),
    PromptMessage("assistant", "Let me see.", calls=(CALL,)),
    PromptMessage("result", "4 degrees", calls=(CALL,)),
    PromptMessage("assistant", "It is cold."),
    PromptMessage("user", "Thank you."),
)


@pytest.mark.parametrize("name", TURN_SPECS)
def test_render_conversation_matches_golden_prompt(name: str) -> None:
    """Compare the prompt without its tools with the stored one."""
    messages = (*CONVERSATION[:2], PromptMessage("assistant", "Let me see.", calls=(CALL, OTHER)), CONVERSATION[3])
    prompt = render_conversation(
        [*messages, PromptMessage("result", "20 degrees", calls=(OTHER,))], format=name, tools=[WEATHER_TOOL]
    )
    assert prompt == PROMPTS[name].replace("{tools}", render_tools([WEATHER_TOOL], format=name).strip("\n"))


@pytest.mark.parametrize("name", TURN_SPECS)
def test_render_conversation_contains_every_text_once_and_in_order(name: str) -> None:
    prompt = render_conversation(CONVERSATION, format=name, tools=[WEATHER_TOOL])
    offsets = [prompt.find(item.text) for item in CONVERSATION]
    assert [prompt.count(item.text) for item in CONVERSATION] == [1] * len(CONVERSATION)
    assert offsets == sorted(offsets)
    assert prompt.count(render_tools([WEATHER_TOOL], format=name).strip("\n")) == 1
    assert prompt.endswith(get_turn_spec(name).effective_turn_start)


@pytest.mark.parametrize("name", TURN_SPECS)
def test_render_conversation_writes_a_call_that_parses_equal(name: str) -> None:
    """Parse the call in the prompt: the history shows it as the model should write it."""
    messages_before, messages_after = CONVERSATION[:2], CONVERSATION[:3]
    before = render_conversation(messages_before, format=name, tools=[WEATHER_TOOL])
    after = render_conversation(messages_after, format=name, tools=[WEATHER_TOOL])
    turns = get_turn_spec(name)
    turn_start = turns.reminder + turns.effective_turn_start
    assert after.startswith(before.removesuffix(turn_start))
    turn = after[len(before.removesuffix(turn_start)) :].removesuffix(turn_start).removeprefix(turns.assistant_frame[0])
    parsed = parse(turn, format=name, tools=[WEATHER_TOOL])
    assert [(call.name, call.arguments) for call in parsed.calls] == [("get_weather", {"city": "Oslo"})]
    assert parsed.text.startswith("Let me see.")


def test_hermes_turns_are_chatml() -> None:
    assert render_conversation(CONVERSATION[1:4], format="hermes") == (
        "<|im_start|>user\nAnd in Oslo?<|im_end|>\n"
        "<|im_start|>assistant\nLet me see.\n"
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n4 degrees\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_llama_renders_results_as_ipython_and_one_end_per_call() -> None:
    prompt = render_conversation(CONVERSATION[1:4], format="llama3_python_tag")
    assert prompt.endswith(
        '<|python_tag|>{"name": "get_weather", "arguments": {"city": "Oslo"}}<|eom_id|>'
        '<|start_header_id|>ipython<|end_header_id|>\n\n{"output": "4 degrees"}<|eot_id|>'
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_harmony_renders_text_before_calls_as_separate_message() -> None:
    prompt = render_conversation(CONVERSATION[1:], format="harmony")
    assert (
        "<|start|>assistant<|channel|>commentary<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>'
        "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>4 degrees<|end|>"
        "<|start|>assistant<|channel|>final<|message|>It is cold.<|end|>"
    ) in prompt


@pytest.mark.parametrize("name", REASONING_FORMATS)
def test_reasoning_is_rendered_once_before_text_and_calls(name: str) -> None:
    """Render reasoning in a first turn and after results, with text and without."""
    turns, reasoning = get_turn_spec(name), get_format(name).reasoning_markers
    start_marker, end_marker = turns.reasoning_frame or (f"{reasoning[0][0]}\n", f"\n{reasoning[0][1]}")
    for text, earlier in itertools.product(("Let me see.", ""), (CONVERSATION[1:2], CONVERSATION[1:4])):
        is_resumed = earlier[-1].author == "result" and turns.start_after_results is not None
        turn_start = (
            turns.start_after_results
            if is_resumed and turns.start_after_results is not None and not turns.keeps_requested_start
            else turns.effective_turn_start
        )
        before = render_conversation(earlier, format=name).removesuffix(turn_start)
        prompt = render_conversation([*earlier, PromptMessage("assistant", text, "Hm.", calls=(OTHER,))], format=name)
        assert prompt.startswith(before)
        assert not before.endswith(end_marker)
        turn = prompt.removeprefix(before).removesuffix(turns.effective_turn_start)
        assert turn.startswith(("" if is_resumed else turns.assistant_frame[0]) + start_marker + "Hm." + end_marker)
        assert [turn.count(tag) for pair in reasoning for tag in pair if tag in start_marker + end_marker] in (
            [1, 1],
            [],
        )
        assert turn.index("Hm.") <= turn.rindex(text or "Hm.") < turn.index("Rome")
        parsed = parse(turn.removeprefix(turns.assistant_frame[0]), format=name, tools=[WEATHER_TOOL])
        assert (parsed.reasoning, parsed.text, len(parsed.calls)) == ("Hm.", text, 1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("glm45", "<|assistant|>\n<think>Hm.</think>\nLet me see.\n<tool_call>"),
        ("deepseek_v32", "<｜Assistant｜><think>Hm.</think>Let me see.\n\n<｜DSML｜function_calls>"),
        ("hermes", "<|im_start|>assistant\n<think>\nHm.\n</think>\n\nLet me see.\n<tool_call>"),
        (
            "kimi_k3",
            '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>Hm.<|close|>think<|sep|>'
            "<|open|>response<|sep|>Let me see.<|close|>response<|sep|><|open|>tools<|sep|>",
        ),
        (
            "inkling",
            "<|message_model|><|content_thinking|>Hm.<|end_message|><|message_model|><|content_text|>Let me see."
            "<|end_message|><|message_model|>get_weather<|content_invoke_tool_json|>",
        ),
        (
            "harmony",
            "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary"
            "<|message|>Let me see.<|end|>",
        ),
    ],
)
def test_reasoning_is_rendered_in_the_frame_of_the_family(name: str, expected: str) -> None:
    messages = [CONVERSATION[1], PromptMessage("assistant", "Let me see.", "Hm.", calls=(CALL,)), CONVERSATION[3]]
    assert expected in render_conversation(messages, format=name)


def test_turn_after_results_begins_as_the_family_requires() -> None:
    prompt = render_conversation(CONVERSATION[1:], format="apertus")
    assert "[4 degrees]It is cold.<|assistant_end|>" in prompt
    assert render_conversation(CONVERSATION[1:4], format="apertus").endswith("[4 degrees]<|assistant_start|>")


def test_command_r_prompt_with_tools_has_a_reminder() -> None:
    reminder = get_turn_spec("command_r").reminder
    assert render_conversation(CONVERSATION, format="command_r", tools=[WEATHER_TOOL]).count(reminder) == 1
    assert reminder not in render_conversation(CONVERSATION, format="command_r")


def test_gemma_4_continues_the_turn_with_the_call() -> None:
    assert render_conversation(CONVERSATION[1:4], format="gemma4").endswith(
        '<tool_call|><|tool_response>response:get_weather{value:<|"|>4 degrees<|"|>}<tool_response|>'
    )


def test_system_text_without_system_turn_precedes_user_text() -> None:
    assert render_conversation(CONVERSATION[:2], format="mistral_v3") == "[INST] Be brief.\n\nAnd in Oslo?[/INST]"
    assert render_conversation(CONVERSATION[:1], format="mistral_v3") == "[INST] Be brief.[/INST]"


def test_first_system_messages_are_joined_and_later_ones_are_turns() -> None:
    messages = [
        PromptMessage("system", "One."),
        PromptMessage("system", "Two."),
        PromptMessage("user", "Go."),
        PromptMessage("system", "Three."),
    ]
    prompt = render_conversation(messages, format="hermes")
    assert prompt.startswith("<|im_start|>system\nOne.\n\nTwo.<|im_end|>\n<|im_start|>user\nGo.<|im_end|>\n")
    assert "<|im_start|>system\nThree.<|im_end|>\n" in prompt


def test_mistral_puts_tools_before_last_user_and_sends_nine_char_ids() -> None:
    prompt = render_conversation(CONVERSATION, format="mistral_v3", tools=[WEATHER_TOOL])
    assert prompt.endswith("[/AVAILABLE_TOOLS][INST] Thank you.[/INST]")
    assert '"id": "call00000"' in prompt
    assert '"call_id": "call00000"' in prompt


def test_mistral_v7_has_results_by_id_and_v15_settings_after_tools() -> None:
    v7 = render_conversation(CONVERSATION, format="mistral_v7", tools=[WEATHER_TOOL])
    assert v7.endswith("[/AVAILABLE_TOOLS][INST]Thank you.[/INST]")
    assert "</s>[TOOL_RESULTS]call00000[TOOL_CONTENT]4 degrees[/TOOL_RESULTS]It is cold.</s>" in v7
    v15 = render_conversation(CONVERSATION, format="mistral_v15", tools=[WEATHER_TOOL])
    assert '[/AVAILABLE_TOOLS][MODEL_SETTINGS]{"reasoning_effort": "none"}[/MODEL_SETTINGS][INST]And' in v15
    assert '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}</s>[TOOL_RESULTS]4 degrees[/TOOL_RESULTS]' in v15


def test_deepseek_v41_puts_results_in_one_user_turn_in_call_order() -> None:
    messages = (*CONVERSATION[:3], CONVERSATION[3], PromptMessage("result", "9 degrees", calls=(CALL,)))
    prompt = render_conversation(messages, format="deepseek_v41", tools=[WEATHER_TOOL])
    assert prompt.startswith("<｜System｜>Be brief.")
    results = "<tool_result>4 degrees</tool_result>\n\n<tool_result>9 degrees</tool_result>"
    assert prompt.endswith(f"</｜DSML｜ calls><｜end▁of▁sentence｜><｜User｜>{results}<｜Assistant｜></think>")


def test_kimi_ids_count_over_the_complete_conversation() -> None:
    second_call = TextCall("get_weather", {"city": "Rome"}, "call_def")
    messages = [
        *CONVERSATION[1:4],
        PromptMessage("assistant", "", calls=(second_call,)),
        PromptMessage("result", "20 degrees", calls=(second_call,)),
    ]
    prompt = render_conversation(messages, format="kimi_k2")
    assert prompt.count("functions.get_weather:0") == prompt.count("functions.get_weather:1") == 2


def test_kimi_id_that_the_model_used_is_not_given_to_another_call() -> None:
    calls = (replace(CALL, id="functions.get_weather:1"), OTHER)
    prompt = render_conversation([PromptMessage("assistant", "", calls=calls)], format="kimi_k2")
    assert re.findall(r"functions\.get_weather:(\d)", prompt) == ["1", "2"]


@pytest.mark.parametrize("name", ["kimi_k2", "cohere", "mistral_v11"])
def test_calls_that_share_an_id_get_distinct_ids_with_their_results(name: str) -> None:
    """Give ids also if results come in another order, or a later turn repeats the id."""
    first, second, third = (TextCall(name, {"n": n}, "") for name, n in (("get", 1), ("get", 2), ("put", 3)))
    results = [PromptMessage("result", "4", calls=(call,)) for call in (third, first, second)]
    later_turn = [PromptMessage("assistant", "", calls=(first,)), PromptMessage("result", "5", calls=(first,))]
    prompt = render_conversation(
        [PromptMessage("assistant", "", calls=(first, second, third)), *results, *later_turn], format=name
    )
    assert re.findall(r'(?:functions\.\w+:|"tool_call_id": "|call0000)(\d)', prompt) == [*"01220133"]


def test_results_of_one_answer_share_one_turn() -> None:
    second_call = TextCall("get_weather", {"city": "Rome"}, "b")
    messages = [
        PromptMessage("user", "Both?"),
        PromptMessage("assistant", "", calls=(CALL, second_call)),
        PromptMessage("result", "4", calls=(CALL,)),
        PromptMessage("result", "20", calls=(second_call,)),
    ]
    expected = "<|im_start|>user\n<tool_response>\n4\n</tool_response>\n<tool_response>\n20\n</tool_response><|im_end|>"
    assert expected in render_conversation(messages, format="hermes")


@pytest.mark.parametrize("name", sorted(set(formats.list_format_names()) - set(TURN_SPECS)))
def test_format_without_turn_tokens_raises_error_with_alternatives(name: str) -> None:
    with pytest.raises(PlanError, match=f"{name}.*known of all but .*longcat.*react"):
        get_turn_spec(name)
