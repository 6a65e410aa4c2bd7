"""Turn tokens of the model families: the text around each message of a conversation.

Sources:
- the chat templates of model cards and their copies in llama.cpp's models/templates;
- vLLM's tool_chat_template_*.jinja, encoders and renderers;
- mistral-common's samples and templates;
- Cohere's own renderer melody, for command4;
- for jamba, the template of a model card, which a test keeps as a fixture;
- for dots, a renderer that was tested against the template of a model card.

Some families have several templates. The versions used are: granite3: 3.0, gigachat3: 3.1, nemotron: Nano 2,
hunyuan_v3: Hy3, xlam: the one for Qwen, functools: Phi-4-mini, dots: dots3.

No system text of a vendor is included. No value begins with the token that opens every sequence (`<s>`,
`<|begin_of_text|>`, `<bos>` …), because servers add it to a prompt. A model may reason at the beginning of its turn;
the prompts of DeepSeek from 3.1 on, Hunyuan 3, Kimi K3, Cohere, Apertus and mistral_v15 turn reasoning off.
"""

from dataclasses import replace

from toolbench.engine.formats.chat.turn_spec import EMPTY_FRAME, Frame, ToolsPosition, TurnSpec, build_role_turns
from toolbench.engine.formats.families import cohere, kimi, mistral
from toolbench.engine.formats.families.named_lines import TO_ALL


def _build_chatml(
    results_role: str, begin: str = "<|im_start|>", end: str = "<|im_end|>", after_end: str = "\n"
) -> TurnSpec:
    return build_role_turns((begin, "\n"), end + after_end, results_role, ToolsPosition.SYSTEM, end)


def _build_llama(role_frame: Frame, end: str, other_end: str, tools: ToolsPosition) -> TurnSpec:
    return build_role_turns(role_frame, end, "ipython", tools, end, other_end)


_NO_MARKERS = ("", "")  # value of `joint` for formats without text before calls
_BLANK_LINES, _LINE = ("\n\n", "\n\n"), ("\n", "")

_LLAMA3_HEADS: Frame = ("<|start_header_id|>", "<|end_header_id|>\n\n")
_LLAMA3 = _build_llama(_LLAMA3_HEADS, "<|eot_id|>", "<|eom_id|>", ToolsPosition.USER)
_LLAMA3_SYSTEM = ("<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>")
_MISTRAL: Frame = ("[INST] ", "[/INST]")
_MISTRAL_OLD = TurnSpec(
    user=_MISTRAL,
    assistant=(" ", "</s>"),
    tools=ToolsPosition.BEFORE_LAST_USER,
    opening="",
    joint=_NO_MARKERS,
    stops=("</s>",),
    ids=mistral.build_mistral_id,
)
_MISTRAL_NEW = TurnSpec(
    system=("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    user=("[INST]", "[/INST]"),
    assistant=("", "</s>"),
    tools=ToolsPosition.AFTER_SYSTEM,
    joint=_NO_MARKERS,
    stops=("</s>",),
    ids=mistral.build_mistral_id,
)
_DEEPSEEK_END, _DEEPSEEK = "<｜end▁of▁sentence｜>", "<｜Assistant｜>"
_DEEPSEEK_V3 = TurnSpec(
    system=EMPTY_FRAME,
    user=("<｜User｜>", ""),
    assistant=(_DEEPSEEK, _DEEPSEEK_END),
    resumes="",
    joint=_NO_MARKERS,
    stops=(_DEEPSEEK_END,),
)
_DEEPSEEK_V31 = replace(
    _DEEPSEEK_V3, opening=f"{_DEEPSEEK}</think>", unthought="</think>", thought=("<think>", "</think>")
)
_DEEPSEEK_V32 = replace(_DEEPSEEK_V31, results=_BLANK_LINES, resumes="</think>", joint=_BLANK_LINES)
_DEEPSEEK_V4 = replace(_DEEPSEEK_V31, results=_DEEPSEEK_V3.user, resumes=None, joint=_BLANK_LINES)
_GEMMA_USER, _GEMMA_MODEL = ("<start_of_turn>user\n", "<end_of_turn>\n"), ("<start_of_turn>model\n", "<end_of_turn>\n")
_PHI4 = TurnSpec(
    system=("<|system|>", "<|end|>"),
    user=("<|user|>", "<|end|>"),
    assistant=("<|assistant|>", "<|end|>"),
    results=("<|tool|>", "<|end|>"),
    apart=True,
    joint=_NO_MARKERS,
    stops=("<|end|>",),
)
_ROLE = "<|start_of_role|>{}<|end_of_role|>"
_COHERE_END = "<|END_OF_TURN_TOKEN|>"


def _build_cohere_frame(role: str, inside: Frame = EMPTY_FRAME) -> Frame:
    return f"<|START_OF_TURN_TOKEN|><|{role}_TOKEN|>{inside[0]}", inside[1] + _COHERE_END


_COHERE = TurnSpec(
    system=_build_cohere_frame("SYSTEM"),
    user=_build_cohere_frame("USER"),
    assistant=_build_cohere_frame("CHATBOT"),
    results=_build_cohere_frame("SYSTEM"),
    stops=(_COHERE_END,),
)
_COHERE_TEXT, _COHERE_THOUGHT = ("<|START_TEXT|>", "<|END_TEXT|>"), ("<|START_THINKING|>", "<|END_THINKING|>")
_REMINDER = (
    "Write 'Action:' and a JSON list of the calls that are needed now, fenced as json, each with tool_name and "
    "parameters; where none is, call directly-answer."
)
_KIMI_END, _INKLING_END = "<|im_end|>", "<|end_message|>"


def _build_kimi_k3_frame(role: str) -> Frame:
    return f'<|open|>message role="{role}"<|sep|>', kimi.MESSAGE_END


def _build_glm(line_break: str) -> TurnSpec:
    return TurnSpec(
        begins="[gMASK]<sop>",
        system=(f"<|system|>{line_break}", ""),
        user=(f"<|user|>{line_break}", ""),
        assistant=("<|assistant|>", ""),
        tools=ToolsPosition.BEFORE_SYSTEM,
        tools_turn=(f"<|system|>{line_break}", ""),
        unthought="\n<think></think>\n" if line_break else "</think>",
        thought=(f"{line_break}<think>", f"</think>{line_break}"),
        joint=(line_break, ""),
        stops=("<|user|>", "<|observation|>", "<|endoftext|>"),
    )


def _build_minimax_m1_frame(role: str) -> Frame:
    return f"<beginning_of_sentence>{role}\n", "<end_of_sentence>\n"


def _build_minimax_frame(role: str) -> Frame:
    return f"]~b]{role}\n", "[e~[\n"


_HUNYUAN, _HUNYUAN_END = "<｜hy_Assistant:opensource｜>", "<｜hy_eos:opensource｜>"
_HUNYUAN_THOUGHT = ("<think:opensource>", "</think:opensource>")
_INTERN = _build_chatml("environment name=<|plugin|>")
_IFM = build_role_turns(
    ("<|ifm|im_start|>", "\n"), "<|ifm|im_end|>", "tool", ToolsPosition.SYSTEM_HEAD, "<|ifm|im_end|>"
)
_GIGACHAT = build_role_turns(
    ("", "<|role_sep|>\n"), "<|message_sep|>\n\n", "function result", ToolsPosition.AFTER_SYSTEM, "<|message_sep|>"
)


TURN_SPECS: dict[str, TurnSpec] = {
    "hermes": replace(_build_chatml("user"), joint=_LINE),
    "qwen3_coder": replace(_build_chatml("user"), results=("<|im_start|>user\n", "\n<|im_end|>\n")),
    "minicpm5": replace(_build_chatml("user"), joint=_LINE),
    **dict.fromkeys(("xlam", "lfm2"), _build_chatml("tool")),
    "olmo3": _build_chatml("environment"),
    "seed_oss": _build_chatml("tool", "<seed:bos>", "<seed:eos>", ""),
    "internlm2": replace(
        _INTERN,
        tools=ToolsPosition.AFTER_SYSTEM,
        tools_turn=("<|im_start|>system name=<|plugin|>\n", "<|im_end|>\n"),
        joint=_NO_MARKERS,
    ),
    "k2_horizon": replace(
        _IFM, thought=("<ifm|think>\n", "\n</ifm|think>\n"), unthought="<ifm|think>\n</ifm|think>\n", joint=_LINE
    ),
    "llama3_json": _LLAMA3,
    "llama3_python_tag": _LLAMA3,
    "pythonic": _build_llama(_LLAMA3_HEADS, "<|eot_id|>", "<|eom_id|>", ToolsPosition.SYSTEM),
    "llama4": replace(
        _build_llama(("<|header_start|>", "<|header_end|>\n\n"), "<|eot|>", "<|eom|>", ToolsPosition.SYSTEM),
        joint=_NO_MARKERS,
    ),
    "functionary_v31": replace(
        _LLAMA3, tools=ToolsPosition.BEFORE_SYSTEM, tools_turn=_LLAMA3_SYSTEM, pauses="<|eom_id|>", joint=_NO_MARKERS
    ),
    "functionary_v32": replace(
        build_role_turns(_LLAMA3_HEADS, "<|eot_id|>", "tool", ToolsPosition.BEFORE_SYSTEM, "<|eot_id|>"),
        tools_turn=_LLAMA3_SYSTEM,
        text=(TO_ALL, ""),
        preamble=(TO_ALL, ""),
        joint=_NO_MARKERS,
    ),
    "mistral_v2": _MISTRAL_OLD,
    "mistral_v3": _MISTRAL_OLD,
    "mistral_v7": replace(_MISTRAL_NEW, tools=ToolsPosition.BEFORE_LAST_USER),
    "mistral_v11": _MISTRAL_NEW,
    "mistral_v13": _MISTRAL_NEW,
    "mistral_v15": _MISTRAL_NEW,
    "deepseek_v3": _DEEPSEEK_V3,
    "deepseek_v31": _DEEPSEEK_V31,
    "deepseek_v32": _DEEPSEEK_V32,
    "deepseek_v4": _DEEPSEEK_V4,
    "deepseek_v41": replace(_DEEPSEEK_V4, system=("<｜System｜>", "")),
    "gemma3": TurnSpec(
        user=_GEMMA_USER,
        assistant=_GEMMA_MODEL,
        results=_GEMMA_USER,
        tools=ToolsPosition.USER,
        stops=("<end_of_turn>",),
    ),
    "function_gemma": TurnSpec(
        system=("<start_of_turn>developer\n", "<end_of_turn>\n"),
        user=_GEMMA_USER,
        assistant=_GEMMA_MODEL,
        results=_GEMMA_USER,
        apart=True,
        stops=("<end_of_turn>", "<start_function_response>"),
    ),
    "gemma4": TurnSpec(
        system=("<|turn>system\n", "<turn|>\n"),
        user=("<|turn>user\n", "<turn|>\n"),
        assistant=("<|turn>model\n", "<turn|>\n"),
        pauses="",
        resumes="",
        joint=_NO_MARKERS,
        stops=("<turn|>", "<|tool_response>"),
    ),
    "phi4": _PHI4,
    "functools": _PHI4,
    "granite3": TurnSpec(
        system=(_ROLE.format("system"), "<|end_of_text|>\n"),
        user=(_ROLE.format("user"), "<|end_of_text|>\n"),
        assistant=(_ROLE.format("assistant"), "<|end_of_text|>\n"),
        results=("", "\n"),
        tools=ToolsPosition.BEFORE_SYSTEM,
        tools_turn=("", "\n"),
        joint=_NO_MARKERS,
        stops=("<|end_of_text|>",),
    ),
    "granite_20b_fc": TurnSpec(
        system=("SYSTEM: ", "\n"),
        user=("\nUSER: ", "\n"),
        assistant=("\nASSISTANT:", "<|endoftext|>\n"),
        tools=ToolsPosition.AFTER_SYSTEM,
        tools_turn=("", "\n\n\n"),
        text=(" ", " "),
        preamble=(" ", ""),
        joint=("\n", "\n"),
        pauses="\n<|endoftext|>\n",
        stops=("<|endoftext|>",),
    ),
    "nemotron": TurnSpec(
        system=("<SPECIAL_10>System\n", "\n\n"),
        user=("<SPECIAL_11>User\n", "\n"),
        assistant=("<SPECIAL_11>Assistant\n", "\n<SPECIAL_12>\n"),
        results=("<SPECIAL_11>User\n", ""),
        joint=_LINE,
        stops=("<SPECIAL_12>",),
    ),
    "jamba": TurnSpec(
        system=("<|bom|><|system|> ", "<|eom|>"),
        user=("<|bom|><|user|> ", "<|eom|>"),
        assistant=("<|bom|><|assistant|> ", "<|eom|>"),
        results=("<|bom|><|tool|> ", "<|eom|>"),
        apart=True,
        opening="<|bom|><|assistant|>",
        joint=_NO_MARKERS,
        stops=("<|eom|>",),
    ),
    "apertus": TurnSpec(
        system=("<|system_start|>", "<|system_end|>"),
        user=("<|user_start|>", "<|user_end|>"),
        assistant=("<|assistant_start|>", "<|assistant_end|>"),
        tools=ToolsPosition.AFTER_SYSTEM,
        tools_turn=("<|developer_start|>Deliberation: disabled\nTool Capabilities:\n", "<|developer_end|>"),
        pauses="",
        resumes="",
        reopens=True,
        joint=_NO_MARKERS,
        stops=("<|assistant_end|>",),
    ),
    "gigachat3": replace(
        _GIGACHAT, tools_turn=("function descriptions<|role_sep|>\n", "\n\n<|message_sep|>\n\n"), joint=_NO_MARKERS
    ),
    "inkling": TurnSpec(
        system=("<|message_system|><|content_text|>", _INKLING_END),
        user=("<|message_user|><|content_text|>", _INKLING_END),
        assistant=("<|message_model|>", "<|content_model_end_sampling|>"),
        tools=ToolsPosition.BEFORE_SYSTEM,
        text=("<|content_text|>", _INKLING_END),
        preamble=("<|content_text|>", f"{_INKLING_END}<|message_model|>"),
        thought=("<|content_thinking|>", f"{_INKLING_END}<|message_model|>"),
        joint=_NO_MARKERS,
        stops=("<|content_model_end_sampling|>",),
    ),
    "kimi_k2": TurnSpec(
        system=("<|im_system|>system<|im_middle|>", _KIMI_END),
        user=("<|im_user|>user<|im_middle|>", _KIMI_END),
        assistant=("<|im_assistant|>assistant<|im_middle|>", _KIMI_END),
        tools=ToolsPosition.BEFORE_SYSTEM,
        joint=_NO_MARKERS,
        stops=(_KIMI_END,),
        ids=kimi.build_kimi_id,
    ),
    "kimi_k3": TurnSpec(
        system=_build_kimi_k3_frame("system"),
        user=_build_kimi_k3_frame("user"),
        assistant=_build_kimi_k3_frame("assistant"),
        tools=ToolsPosition.BEFORE_SYSTEM,
        opening=_build_kimi_k3_frame("assistant")[0] + kimi.RESPONSE[0],
        text=kimi.RESPONSE,
        preamble=kimi.RESPONSE,
        thought=kimi.REASONING,
        joint=("", "".join(kimi.RESPONSE)),
        stops=("<|end_of_msg|>",),
    ),
    "glm45": _build_glm("\n"),
    "glm47": _build_glm(""),
    "hunyuan_v3": TurnSpec(
        system=("", "<｜reasoning_mode:opensource｜>reasoning_effort:no_think"),
        user=("<｜hy_User:opensource｜>", ""),
        assistant=(_HUNYUAN, _HUNYUAN_END),
        opening=_HUNYUAN + "".join(_HUNYUAN_THOUGHT),
        thought=_HUNYUAN_THOUGHT,
        unthought="".join(_HUNYUAN_THOUGHT),
        joint=_NO_MARKERS,
        stops=(_HUNYUAN_END,),
    ),
    "minimax_m1": TurnSpec(
        begins="<begin_of_document>",
        system=_build_minimax_m1_frame("system ai_setting=assistant"),
        user=_build_minimax_m1_frame("user name=user"),
        assistant=_build_minimax_m1_frame("ai name=assistant"),
        results=_build_minimax_m1_frame("tool name=tools"),
        apart=True,
        tools=ToolsPosition.AFTER_SYSTEM,
        tools_turn=_build_minimax_m1_frame("system tool_setting=tools"),
        joint=_LINE,
        stops=("<end_of_sentence>",),
    ),
    "minimax_m2": TurnSpec(
        begins="]~!b[",
        system=_build_minimax_frame("system"),
        user=_build_minimax_frame("user"),
        assistant=_build_minimax_frame("ai"),
        results=_build_minimax_frame("tool"),
        joint=("\n", "\n"),
        stops=("[e~[",),
    ),
    "minimax_m3": TurnSpec(
        begins="]~!b[",
        system=_build_minimax_frame("developer"),
        user=_build_minimax_frame("user"),
        assistant=_build_minimax_frame("ai"),
        results=_build_minimax_frame("tool"),
        thought=("<mm:think>", "</mm:think>"),
        unthought="</mm:think>",
        joint=_NO_MARKERS,
        stops=("[e~[",),
    ),
    "dots": TurnSpec(
        system=("<|system|>", "<|endofsystem|>"),
        user=("<|user|>", "<|endofuser|>"),
        assistant=("<|assistant|>", "<|endofassistant|>"),
        results=("<|user|>", "<|endofuser|>"),
        joint=("\n", "\n"),
        stops=("<|endofassistant|>",),
    ),
    "cohere": replace(
        _COHERE,
        opening=_build_cohere_frame("CHATBOT")[0] + "".join(_COHERE_THOUGHT),
        text=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        thought=_COHERE_THOUGHT,
        unthought_calls="".join(_COHERE_THOUGHT),
        joint=_NO_MARKERS,
        ids=cohere.build_position_id,
    ),
    "command_r": replace(
        _COHERE,
        apart=True,
        joint=("\n", "\n"),
        pauses="",
        reminds=_REMINDER.join(_build_cohere_frame("SYSTEM")),
    ),
    "command4": replace(
        _COHERE,
        system=_build_cohere_frame("SYSTEM", _COHERE_TEXT),
        user=_build_cohere_frame("USER", _COHERE_TEXT),
        tools=ToolsPosition.BEFORE_SYSTEM,
        tools_turn=_build_cohere_frame("SYSTEM", _COHERE_TEXT),
        text=_COHERE_TEXT,
        preamble=_COHERE_TEXT,
        thought=_COHERE_THOUGHT,
        unthought="".join(_COHERE_THOUGHT),
        joint=_NO_MARKERS,
        ids=cohere.build_position_id,
    ),
    "harmony": TurnSpec(
        system=("<|start|>developer<|message|>", "<|end|>"),
        user=("<|start|>user<|message|>", "<|end|>"),
        assistant=("<|start|>assistant", ""),
        text=("<|channel|>final<|message|>", "<|end|>"),
        preamble=("<|channel|>commentary<|message|>", "<|end|><|start|>assistant"),
        thought=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        joint=_NO_MARKERS,
        begins=(
            "<|start|>system<|message|># Valid channels: analysis, commentary, final. Channel must be included for "
            "every message.\nCalls to these tools must go to the commentary channel: 'functions'.<|end|>"
        ),
        stops=("<|call|>", "<|return|>"),
    ),
}
"""The turn formats by the name of the text format. Formats whose turn tokens are unknown are missing."""
