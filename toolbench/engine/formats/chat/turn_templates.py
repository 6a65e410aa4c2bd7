"""Turn tokens of the model families: the text around each message of a conversation.

Sources:
- the chat templates of model cards and their copies in llama.cpp's models/templates;
- vLLM's tool_chat_template_*.jinja, encoders and renderers;
- mistral-common's samples and templates;
- Cohere's own renderer melody, for command4;
- for jamba, the template of a model card;
- for dots, a renderer that was tested against the template of a model card.

Some families have several templates. The versions used are: granite3: 3.0, gigachat3: 3.1, nemotron: Nano 2,
hunyuan_v3: Hy3, xlam: the one for Qwen, functools: Phi-4-mini, dots: dots3.

The default system prompts of vendors are not included. No value begins with a token that servers add to every prompt
(`<s>`, `<|begin_of_text|>`, `<bos>` …).

A model may reason at the beginning of its turn. Exceptions: the prompts of deepseek_v31 and later, hunyuan_v3, kimi_k3
and cohere turn reasoning off, and those of apertus and mistral_v15 do so if there are tools.
"""

from dataclasses import replace

from toolbench.engine.formats.chat.shared_turns import (
    DEEPSEEK_V3,
    DEEPSEEK_V4,
    DEEPSEEK_V31,
    DEEPSEEK_V32,
    LINE_BREAK_AFTER_TEXT,
    LLAMA3,
    LLAMA3_ROLE_FRAME,
    LLAMA3_SYSTEM_FRAME,
    MISTRAL_V2,
    MISTRAL_V11,
    NO_SEPARATORS,
    build_chatml,
    build_llama,
)
from toolbench.engine.formats.chat.turn_spec import EMPTY_FRAME, Frame, ToolsPosition, TurnSpec, build_role_turns
from toolbench.engine.formats.families import cohere, kimi
from toolbench.engine.formats.families.named_lines import ALL_RECIPIENTS_LINE

_GEMMA_USER_FRAME = ("<start_of_turn>user\n", "<end_of_turn>\n")
_GEMMA_MODEL_FRAME = ("<start_of_turn>model\n", "<end_of_turn>\n")
_PHI4 = TurnSpec(
    system_frame=("<|system|>", "<|end|>"),
    user_frame=("<|user|>", "<|end|>"),
    assistant_frame=("<|assistant|>", "<|end|>"),
    results_frame=("<|tool|>", "<|end|>"),
    has_frame_per_result=True,
    separators_before_calls=NO_SEPARATORS,
    stop_texts=("<|end|>",),
)
_GRANITE_ROLE = "<|start_of_role|>{}<|end_of_role|>"
_COHERE_END = "<|END_OF_TURN_TOKEN|>"


def _build_cohere_frame(role: str, inner_frame: Frame = EMPTY_FRAME) -> Frame:
    return f"<|START_OF_TURN_TOKEN|><|{role}_TOKEN|>{inner_frame[0]}", inner_frame[1] + _COHERE_END


_COHERE = TurnSpec(
    system_frame=_build_cohere_frame("SYSTEM"),
    user_frame=_build_cohere_frame("USER"),
    assistant_frame=_build_cohere_frame("CHATBOT"),
    results_frame=_build_cohere_frame("SYSTEM"),
    stop_texts=(_COHERE_END,),
)
_COHERE_TEXT_FRAME, _COHERE_REASONING = ("<|START_TEXT|>", "<|END_TEXT|>"), ("<|START_THINKING|>", "<|END_THINKING|>")
_COMMAND_R_REMINDER = (
    "Write 'Action:' and a JSON list of the calls that are needed now, fenced as json, each with tool_name and "
    "parameters. If no call is needed, call directly-answer."
)
_KIMI_END, _INKLING_END = "<|im_end|>", "<|end_message|>"


def _build_kimi_k3_frame(role: str) -> Frame:
    return f'<|open|>message role="{role}"<|sep|>', kimi.MESSAGE_END


def _build_glm(line_break: str) -> TurnSpec:
    """Return the turn format of GLM. `line_break` is a line break for GLM 4.5, and "" for later versions."""
    return TurnSpec(
        prompt_start="[gMASK]<sop>",
        system_frame=(f"<|system|>{line_break}", ""),
        user_frame=(f"<|user|>{line_break}", ""),
        assistant_frame=("<|assistant|>", ""),
        tools_position=ToolsPosition.BEFORE_SYSTEM,
        tools_frame=(f"<|system|>{line_break}", ""),
        missing_reasoning="\n<think></think>\n" if line_break else "</think>",
        reasoning_frame=(f"{line_break}<think>", f"</think>{line_break}"),
        separators_before_calls=(line_break, ""),
        stop_texts=("<|user|>", "<|observation|>", "<|endoftext|>"),
    )


def _build_minimax_m1_frame(role: str) -> Frame:
    return f"<beginning_of_sentence>{role}\n", "<end_of_sentence>\n"


def _build_minimax_frame(role: str) -> Frame:
    return f"]~b]{role}\n", "[e~[\n"


_HUNYUAN_ASSISTANT, _HUNYUAN_END = "<｜hy_Assistant:opensource｜>", "<｜hy_eos:opensource｜>"
_HUNYUAN_REASONING = ("<think:opensource>", "</think:opensource>")
_INTERN = build_chatml("environment name=<|plugin|>")
_IFM = build_role_turns(
    ("<|ifm|im_start|>", "\n"), "<|ifm|im_end|>", "tool", ToolsPosition.SYSTEM_HEAD, "<|ifm|im_end|>"
)
_GIGACHAT = build_role_turns(
    ("", "<|role_sep|>\n"), "<|message_sep|>\n\n", "function result", ToolsPosition.AFTER_SYSTEM, "<|message_sep|>"
)


TURN_SPECS: dict[str, TurnSpec] = {
    "hermes": replace(build_chatml("user"), separators_before_calls=LINE_BREAK_AFTER_TEXT),
    "qwen3_coder": replace(build_chatml("user"), results_frame=("<|im_start|>user\n", "\n<|im_end|>\n")),
    "minicpm5": replace(build_chatml("user"), separators_before_calls=LINE_BREAK_AFTER_TEXT),
    **dict.fromkeys(("xlam", "lfm2"), build_chatml("tool")),
    "olmo3": build_chatml("environment"),
    "seed_oss": build_chatml("tool", "<seed:bos>", "<seed:eos>", ""),
    "internlm2": replace(
        _INTERN,
        tools_position=ToolsPosition.AFTER_SYSTEM,
        tools_frame=("<|im_start|>system name=<|plugin|>\n", "<|im_end|>\n"),
        separators_before_calls=NO_SEPARATORS,
    ),
    "k2_horizon": replace(
        _IFM,
        reasoning_frame=("<ifm|think>\n", "\n</ifm|think>\n"),
        missing_reasoning="<ifm|think>\n</ifm|think>\n",
        separators_before_calls=LINE_BREAK_AFTER_TEXT,
    ),
    "llama3_json": LLAMA3,
    "llama3_python_tag": LLAMA3,
    "pythonic": build_llama(LLAMA3_ROLE_FRAME, "<|eot_id|>", "<|eom_id|>", ToolsPosition.SYSTEM),
    "llama4": replace(
        build_llama(("<|header_start|>", "<|header_end|>\n\n"), "<|eot|>", "<|eom|>", ToolsPosition.SYSTEM),
        separators_before_calls=NO_SEPARATORS,
    ),
    "functionary_v31": replace(
        LLAMA3,
        tools_position=ToolsPosition.BEFORE_SYSTEM,
        tools_frame=LLAMA3_SYSTEM_FRAME,
        end_after_calls="<|eom_id|>",
        separators_before_calls=NO_SEPARATORS,
    ),
    "functionary_v32": replace(
        build_role_turns(LLAMA3_ROLE_FRAME, "<|eot_id|>", "tool", ToolsPosition.BEFORE_SYSTEM, "<|eot_id|>"),
        tools_frame=LLAMA3_SYSTEM_FRAME,
        text_frame=(ALL_RECIPIENTS_LINE, ""),
        preamble_frame=(ALL_RECIPIENTS_LINE, ""),
        separators_before_calls=NO_SEPARATORS,
    ),
    "mistral_v2": MISTRAL_V2,
    "mistral_v3": MISTRAL_V2,
    "mistral_v7": replace(MISTRAL_V11, tools_position=ToolsPosition.BEFORE_LAST_USER),
    "mistral_v11": MISTRAL_V11,
    "mistral_v13": MISTRAL_V11,
    "mistral_v15": MISTRAL_V11,
    "deepseek_v3": DEEPSEEK_V3,
    "deepseek_v31": DEEPSEEK_V31,
    "deepseek_v32": DEEPSEEK_V32,
    "deepseek_v4": DEEPSEEK_V4,
    "deepseek_v41": replace(DEEPSEEK_V4, system_frame=("<｜System｜>", "")),
    "gemma3": TurnSpec(
        user_frame=_GEMMA_USER_FRAME,
        assistant_frame=_GEMMA_MODEL_FRAME,
        results_frame=_GEMMA_USER_FRAME,
        tools_position=ToolsPosition.USER,
        stop_texts=("<end_of_turn>",),
    ),
    "function_gemma": TurnSpec(
        system_frame=("<start_of_turn>developer\n", "<end_of_turn>\n"),
        user_frame=_GEMMA_USER_FRAME,
        assistant_frame=_GEMMA_MODEL_FRAME,
        results_frame=_GEMMA_USER_FRAME,
        has_frame_per_result=True,
        stop_texts=("<end_of_turn>", "<start_function_response>"),
    ),
    "gemma4": TurnSpec(
        system_frame=("<|turn>system\n", "<turn|>\n"),
        user_frame=("<|turn>user\n", "<turn|>\n"),
        assistant_frame=("<|turn>model\n", "<turn|>\n"),
        end_after_calls="",
        start_after_results="",
        separators_before_calls=NO_SEPARATORS,
        stop_texts=("<turn|>", "<|tool_response>"),
    ),
    "phi4": _PHI4,
    "functools": _PHI4,
    "granite3": TurnSpec(
        system_frame=(_GRANITE_ROLE.format("system"), "<|end_of_text|>\n"),
        user_frame=(_GRANITE_ROLE.format("user"), "<|end_of_text|>\n"),
        assistant_frame=(_GRANITE_ROLE.format("assistant"), "<|end_of_text|>\n"),
        results_frame=("", "\n"),
        tools_position=ToolsPosition.BEFORE_SYSTEM,
        tools_frame=("", "\n"),
        separators_before_calls=NO_SEPARATORS,
        stop_texts=("<|end_of_text|>",),
    ),
    "granite_20b_fc": TurnSpec(
        system_frame=("SYSTEM: ", "\n"),
        user_frame=("\nUSER: ", "\n"),
        assistant_frame=("\nASSISTANT:", "<|endoftext|>\n"),
        tools_position=ToolsPosition.AFTER_SYSTEM,
        tools_frame=("", "\n\n\n"),
        text_frame=(" ", " "),
        preamble_frame=(" ", ""),
        separators_before_calls=("\n", "\n"),
        end_after_calls="\n<|endoftext|>\n",
        stop_texts=("<|endoftext|>",),
    ),
    "nemotron": TurnSpec(
        system_frame=("<SPECIAL_10>System\n", "\n\n"),
        user_frame=("<SPECIAL_11>User\n", "\n"),
        assistant_frame=("<SPECIAL_11>Assistant\n", "\n<SPECIAL_12>\n"),
        results_frame=("<SPECIAL_11>User\n", ""),
        separators_before_calls=LINE_BREAK_AFTER_TEXT,
        stop_texts=("<SPECIAL_12>",),
    ),
    "jamba": TurnSpec(
        system_frame=("<|bom|><|system|> ", "<|eom|>"),
        user_frame=("<|bom|><|user|> ", "<|eom|>"),
        assistant_frame=("<|bom|><|assistant|> ", "<|eom|>"),
        results_frame=("<|bom|><|tool|> ", "<|eom|>"),
        has_frame_per_result=True,
        requested_turn_start="<|bom|><|assistant|>",
        separators_before_calls=NO_SEPARATORS,
        stop_texts=("<|eom|>",),
    ),
    "apertus": TurnSpec(
        system_frame=("<|system_start|>", "<|system_end|>"),
        user_frame=("<|user_start|>", "<|user_end|>"),
        assistant_frame=("<|assistant_start|>", "<|assistant_end|>"),
        tools_position=ToolsPosition.AFTER_SYSTEM,
        tools_frame=("<|developer_start|>Deliberation: disabled\nTool Capabilities:\n", "<|developer_end|>"),
        end_after_calls="",
        start_after_results="",
        keeps_requested_start=True,
        separators_before_calls=NO_SEPARATORS,
        stop_texts=("<|assistant_end|>",),
    ),
    "gigachat3": replace(
        _GIGACHAT,
        tools_frame=("function descriptions<|role_sep|>\n", "\n\n<|message_sep|>\n\n"),
        separators_before_calls=NO_SEPARATORS,
    ),
    "inkling": TurnSpec(
        system_frame=("<|message_system|><|content_text|>", _INKLING_END),
        user_frame=("<|message_user|><|content_text|>", _INKLING_END),
        assistant_frame=("<|message_model|>", "<|content_model_end_sampling|>"),
        tools_position=ToolsPosition.BEFORE_SYSTEM,
        text_frame=("<|content_text|>", _INKLING_END),
        preamble_frame=("<|content_text|>", f"{_INKLING_END}<|message_model|>"),
        reasoning_frame=("<|content_thinking|>", f"{_INKLING_END}<|message_model|>"),
        separators_before_calls=NO_SEPARATORS,
        stop_texts=("<|content_model_end_sampling|>",),
    ),
    "kimi_k2": TurnSpec(
        system_frame=("<|im_system|>system<|im_middle|>", _KIMI_END),
        user_frame=("<|im_user|>user<|im_middle|>", _KIMI_END),
        assistant_frame=("<|im_assistant|>assistant<|im_middle|>", _KIMI_END),
        tools_position=ToolsPosition.BEFORE_SYSTEM,
        separators_before_calls=NO_SEPARATORS,
        stop_texts=(_KIMI_END,),
        build_id=kimi.build_kimi_id,
    ),
    "kimi_k3": TurnSpec(
        system_frame=_build_kimi_k3_frame("system"),
        user_frame=_build_kimi_k3_frame("user"),
        assistant_frame=_build_kimi_k3_frame("assistant"),
        tools_position=ToolsPosition.BEFORE_SYSTEM,
        requested_turn_start=_build_kimi_k3_frame("assistant")[0] + kimi.RESPONSE_MARKERS[0],
        text_frame=kimi.RESPONSE_MARKERS,
        preamble_frame=kimi.RESPONSE_MARKERS,
        reasoning_frame=kimi.REASONING_MARKERS,
        separators_before_calls=("", "".join(kimi.RESPONSE_MARKERS)),
        stop_texts=("<|end_of_msg|>",),
    ),
    "glm45": _build_glm("\n"),
    "glm47": _build_glm(""),
    "hunyuan_v3": TurnSpec(
        system_frame=("", "<｜reasoning_mode:opensource｜>reasoning_effort:no_think"),
        user_frame=("<｜hy_User:opensource｜>", ""),
        assistant_frame=(_HUNYUAN_ASSISTANT, _HUNYUAN_END),
        requested_turn_start=_HUNYUAN_ASSISTANT + "".join(_HUNYUAN_REASONING),
        reasoning_frame=_HUNYUAN_REASONING,
        missing_reasoning="".join(_HUNYUAN_REASONING),
        separators_before_calls=NO_SEPARATORS,
        stop_texts=(_HUNYUAN_END,),
    ),
    "minimax_m1": TurnSpec(
        prompt_start="<begin_of_document>",
        system_frame=_build_minimax_m1_frame("system ai_setting=assistant"),
        user_frame=_build_minimax_m1_frame("user name=user"),
        assistant_frame=_build_minimax_m1_frame("ai name=assistant"),
        results_frame=_build_minimax_m1_frame("tool name=tools"),
        has_frame_per_result=True,
        tools_position=ToolsPosition.AFTER_SYSTEM,
        tools_frame=_build_minimax_m1_frame("system tool_setting=tools"),
        separators_before_calls=LINE_BREAK_AFTER_TEXT,
        stop_texts=("<end_of_sentence>",),
    ),
    "minimax_m2": TurnSpec(
        prompt_start="]~!b[",
        system_frame=_build_minimax_frame("system"),
        user_frame=_build_minimax_frame("user"),
        assistant_frame=_build_minimax_frame("ai"),
        results_frame=_build_minimax_frame("tool"),
        separators_before_calls=("\n", "\n"),
        stop_texts=("[e~[",),
    ),
    "minimax_m3": TurnSpec(
        prompt_start="]~!b[",
        system_frame=_build_minimax_frame("developer"),
        user_frame=_build_minimax_frame("user"),
        assistant_frame=_build_minimax_frame("ai"),
        results_frame=_build_minimax_frame("tool"),
        reasoning_frame=("<mm:think>", "</mm:think>"),
        missing_reasoning="</mm:think>",
        separators_before_calls=NO_SEPARATORS,
        stop_texts=("[e~[",),
    ),
    "dots": TurnSpec(
        system_frame=("<|system|>", "<|endofsystem|>"),
        user_frame=("<|user|>", "<|endofuser|>"),
        assistant_frame=("<|assistant|>", "<|endofassistant|>"),
        results_frame=("<|user|>", "<|endofuser|>"),
        separators_before_calls=("\n", "\n"),
        stop_texts=("<|endofassistant|>",),
    ),
    "cohere": replace(
        _COHERE,
        requested_turn_start=_build_cohere_frame("CHATBOT")[0] + "".join(_COHERE_REASONING),
        text_frame=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        reasoning_frame=_COHERE_REASONING,
        missing_reasoning_before_calls="".join(_COHERE_REASONING),
        separators_before_calls=NO_SEPARATORS,
        build_id=cohere.build_position_id,
    ),
    "command_r": replace(
        _COHERE,
        has_frame_per_result=True,
        separators_before_calls=("\n", "\n"),
        end_after_calls="",
        reminder=_COMMAND_R_REMINDER.join(_build_cohere_frame("SYSTEM")),
    ),
    "command4": replace(
        _COHERE,
        system_frame=_build_cohere_frame("SYSTEM", _COHERE_TEXT_FRAME),
        user_frame=_build_cohere_frame("USER", _COHERE_TEXT_FRAME),
        tools_position=ToolsPosition.BEFORE_SYSTEM,
        tools_frame=_build_cohere_frame("SYSTEM", _COHERE_TEXT_FRAME),
        text_frame=_COHERE_TEXT_FRAME,
        preamble_frame=_COHERE_TEXT_FRAME,
        reasoning_frame=_COHERE_REASONING,
        missing_reasoning="".join(_COHERE_REASONING),
        separators_before_calls=NO_SEPARATORS,
        build_id=cohere.build_position_id,
    ),
    "harmony": TurnSpec(
        system_frame=("<|start|>developer<|message|>", "<|end|>"),
        user_frame=("<|start|>user<|message|>", "<|end|>"),
        assistant_frame=("<|start|>assistant", ""),
        text_frame=("<|channel|>final<|message|>", "<|end|>"),
        preamble_frame=("<|channel|>commentary<|message|>", "<|end|><|start|>assistant"),
        reasoning_frame=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        separators_before_calls=NO_SEPARATORS,
        prompt_start=(
            "<|start|>system<|message|># Valid channels: analysis, commentary, final. Channel must be included for "
            "every message.\nCalls to these tools must go to the commentary channel: 'functions'.<|end|>"
        ),
        stop_texts=("<|call|>", "<|return|>"),
    ),
}
"""The turn formats by the name of the text format. Formats whose turn tokens are unknown are missing."""
