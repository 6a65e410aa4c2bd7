"""Turn tokens that several turn formats share, among them those of Llama 3, Mistral and DeepSeek.

The sources are named in turn_templates.
"""

from dataclasses import replace

from toolbench.engine.formats.chat.turn_spec import EMPTY_FRAME, Frame, ToolsPosition, TurnSpec, build_role_turns
from toolbench.engine.formats.families import mistral


def build_chatml(
    results_role: str, begin: str = "<|im_start|>", end: str = "<|im_end|>", after_end: str = "\n"
) -> TurnSpec:
    """Return a turn format like ChatML, in which each turn begins with its role on a line.

    Args:
        results_role: the role of results.
        begin: the token before the role.
        end: the token at the end of a turn, which also ends an answer.
        after_end: the text between `end` and the next turn.
    """
    return build_role_turns((begin, "\n"), end + after_end, results_role, ToolsPosition.SYSTEM, end)


def build_llama(role_frame: Frame, end: str, other_stop_text: str, tools_position: ToolsPosition) -> TurnSpec:
    """Return a turn format like that of Llama 3. An answer ends at `end`, or at `other_stop_text`."""
    return build_role_turns(role_frame, end, "ipython", tools_position, end, other_stop_text)


NO_SEPARATORS = ("", "")  # value of `separators_before_calls` for formats with nothing before calls
_BLANK_LINE_FRAME, LINE_BREAK_AFTER_TEXT = ("\n\n", "\n\n"), ("\n", "")

LLAMA3_ROLE_FRAME: Frame = ("<|start_header_id|>", "<|end_header_id|>\n\n")
LLAMA3 = build_llama(LLAMA3_ROLE_FRAME, "<|eot_id|>", "<|eom_id|>", ToolsPosition.USER)
LLAMA3_SYSTEM_FRAME = ("<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>")
_MISTRAL_USER_FRAME: Frame = ("[INST] ", "[/INST]")
MISTRAL_V2 = TurnSpec(
    user_frame=_MISTRAL_USER_FRAME,
    assistant_frame=(" ", "</s>"),
    tools_position=ToolsPosition.BEFORE_LAST_USER,
    requested_turn_start="",
    separators_before_calls=NO_SEPARATORS,
    stop_texts=("</s>",),
    build_id=mistral.build_mistral_id,
)
MISTRAL_V11 = TurnSpec(
    system_frame=("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    user_frame=("[INST]", "[/INST]"),
    assistant_frame=("", "</s>"),
    tools_position=ToolsPosition.AFTER_SYSTEM,
    separators_before_calls=NO_SEPARATORS,
    stop_texts=("</s>",),
    build_id=mistral.build_mistral_id,
)
_DEEPSEEK_END, _DEEPSEEK_ASSISTANT = "<｜end▁of▁sentence｜>", "<｜Assistant｜>"
DEEPSEEK_V3 = TurnSpec(
    system_frame=EMPTY_FRAME,
    user_frame=("<｜User｜>", ""),
    assistant_frame=(_DEEPSEEK_ASSISTANT, _DEEPSEEK_END),
    start_after_results="",
    separators_before_calls=NO_SEPARATORS,
    stop_texts=(_DEEPSEEK_END,),
)
DEEPSEEK_V31 = replace(
    DEEPSEEK_V3,
    requested_turn_start=f"{_DEEPSEEK_ASSISTANT}</think>",
    missing_reasoning="</think>",
    reasoning_frame=("<think>", "</think>"),
)
DEEPSEEK_V32 = replace(
    DEEPSEEK_V31,
    results_frame=_BLANK_LINE_FRAME,
    start_after_results="</think>",
    separators_before_calls=_BLANK_LINE_FRAME,
)
DEEPSEEK_V4 = replace(
    DEEPSEEK_V31,
    results_frame=DEEPSEEK_V3.user_frame,
    start_after_results=None,
    separators_before_calls=_BLANK_LINE_FRAME,
)
