"""The tokens around what each side of a conversation says: a family's own way of writing turns.

Where they were found: the model cards' chat templates and their copies among llama.cpp's models/templates, vLLM's
tool_chat_template_*.jinja, encoders and renderers, mistral-common's samples and templates, Cohere's own renderer
(melody; command4), a card's template kept as a test's fixture (jamba) and a renderer tested against one (dots). Of
families with several, granite3 is that of 3.0, gigachat3 that of 3.1, nemotron that of Nano 2, hunyuan_v3 that of Hy3,
xlam and functools are the Qwen and Phi-4-mini ones, and dots is that of dots3. No system text of a maker's own is here.
No value here begins with the token that opens every sequence (`<s>`, `<|begin_of_text|>`, `<bos>` …): servers put it in
front of a prompt themselves. A head alone lets a model that thinks begin to; DeepSeek from 3.1 on, Hunyuan 3, Kimi K3,
Cohere, Apertus and mistral_v15 are asked not to."""

from dataclasses import replace

from toolbench.engine.formats.families import cohere, kimi, mistral
from toolbench.engine.formats.families.named_lines import TO_ALL
from toolbench.engine.formats.framing import NOTHING, Frame, Place, Turns


def _headed(heads: Frame, end: str, results: str, tools: Place, *stops: str) -> Turns:
    """Turns that begin with their role's name between `heads` and end alike."""

    def frame(role: str) -> Frame:
        return heads[0] + role + heads[1], end

    return Turns(
        system=frame("system"),
        user=frame("user"),
        assistant=frame("assistant"),
        results=frame(results),
        tools=tools,
        stops=stops,
        apart=results != "user",
    )


def _chatml(results: str, begin: str = "<|im_start|>", end: str = "<|im_end|>", line: str = "\n") -> Turns:
    return _headed((begin, "\n"), end + line, results, Place.SYSTEM, end)


def _llama(heads: Frame, end: str, more: str, tools: Place) -> Turns:
    return _headed(heads, end, "ipython", tools, end, more)


_BARE = ("", "")  # a joint of nothing
_ALIKE, _LINE = ("\n\n", "\n\n"), ("\n", "")

_LLAMA3_HEADS: Frame = ("<|start_header_id|>", "<|end_header_id|>\n\n")
_LLAMA3 = _llama(_LLAMA3_HEADS, "<|eot_id|>", "<|eom_id|>", Place.USER)
_LLAMA3_SYSTEM = ("<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>")
_MISTRAL: Frame = ("[INST] ", "[/INST]")
_MISTRAL_OLD = Turns(
    user=_MISTRAL,
    assistant=(" ", "</s>"),
    tools=Place.BEFORE_LAST_USER,
    opening="",
    joint=_BARE,
    stops=("</s>",),
    ids=mistral.call_id,
)
_MISTRAL_NEW = Turns(
    system=("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    user=("[INST]", "[/INST]"),
    assistant=("", "</s>"),
    tools=Place.AFTER_SYSTEM,
    joint=_BARE,
    stops=("</s>",),
    ids=mistral.call_id,
)
_DEEPSEEK_END, _DEEPSEEK = "<｜end▁of▁sentence｜>", "<｜Assistant｜>"
_DEEPSEEK_V3 = Turns(
    system=NOTHING,
    user=("<｜User｜>", ""),
    assistant=(_DEEPSEEK, _DEEPSEEK_END),
    resumes="",
    joint=_BARE,
    stops=(_DEEPSEEK_END,),
)
_DEEPSEEK_V31 = replace(
    _DEEPSEEK_V3, opening=f"{_DEEPSEEK}</think>", unthought="</think>", thought=("<think>", "</think>")
)
_DEEPSEEK_V32 = replace(_DEEPSEEK_V31, results=_ALIKE, resumes="</think>", joint=_ALIKE)
_DEEPSEEK_V4 = replace(_DEEPSEEK_V31, results=_DEEPSEEK_V3.user, resumes=None, joint=_ALIKE)
_GEMMA_USER, _GEMMA_MODEL = ("<start_of_turn>user\n", "<end_of_turn>\n"), ("<start_of_turn>model\n", "<end_of_turn>\n")
_PHI4 = Turns(
    system=("<|system|>", "<|end|>"),
    user=("<|user|>", "<|end|>"),
    assistant=("<|assistant|>", "<|end|>"),
    results=("<|tool|>", "<|end|>"),
    apart=True,
    joint=_BARE,
    stops=("<|end|>",),
)
_ROLE = "<|start_of_role|>{}<|end_of_role|>"
_COHERE_END = "<|END_OF_TURN_TOKEN|>"


def _cohere(role: str, inside: Frame = NOTHING) -> Frame:
    return f"<|START_OF_TURN_TOKEN|><|{role}_TOKEN|>{inside[0]}", inside[1] + _COHERE_END


_COHERE = Turns(
    system=_cohere("SYSTEM"),
    user=_cohere("USER"),
    assistant=_cohere("CHATBOT"),
    results=_cohere("SYSTEM"),
    stops=(_COHERE_END,),
)
_COHERE_TEXT, _COHERE_THOUGHT = ("<|START_TEXT|>", "<|END_TEXT|>"), ("<|START_THINKING|>", "<|END_THINKING|>")
_REMINDED = (
    "Write 'Action:' and a JSON list of the calls that are needed now, fenced as json, each with tool_name and "
    "parameters; where none is, call directly-answer."
)
_KIMI_END, _INKLING_END = "<|im_end|>", "<|end_message|>"


def _kimi_k3(role: str) -> Frame:
    return f'<|open|>message role="{role}"<|sep|>', kimi.MESSAGE_END


def _glm(line: str) -> Turns:
    return Turns(
        begins="[gMASK]<sop>",
        system=(f"<|system|>{line}", ""),
        user=(f"<|user|>{line}", ""),
        assistant=("<|assistant|>", ""),
        tools=Place.BEFORE_SYSTEM,
        tools_turn=(f"<|system|>{line}", ""),
        unthought="\n<think></think>\n" if line else "</think>",
        thought=(f"{line}<think>", f"</think>{line}"),
        joint=(line, ""),
        stops=("<|user|>", "<|observation|>", "<|endoftext|>"),
    )


def _minimax_m1(role: str) -> Frame:
    return f"<beginning_of_sentence>{role}\n", "<end_of_sentence>\n"


def _minimax(role: str) -> Frame:
    return f"]~b]{role}\n", "[e~[\n"


_HUNYUAN, _HUNYUAN_END = "<｜hy_Assistant:opensource｜>", "<｜hy_eos:opensource｜>"
_HUNYUAN_THOUGHT = ("<think:opensource>", "</think:opensource>")
_INTERN = _chatml("environment name=<|plugin|>")
_IFM = _headed(("<|ifm|im_start|>", "\n"), "<|ifm|im_end|>", "tool", Place.SYSTEM_HEAD, "<|ifm|im_end|>")
_GIGACHAT = _headed(
    ("", "<|role_sep|>\n"), "<|message_sep|>\n\n", "function result", Place.AFTER_SYSTEM, "<|message_sep|>"
)


TURNS: dict[str, Turns] = {
    "hermes": replace(_chatml("user"), joint=_LINE),
    "qwen3_coder": replace(_chatml("user"), results=("<|im_start|>user\n", "\n<|im_end|>\n")),
    "minicpm5": replace(_chatml("user"), joint=_LINE),
    **dict.fromkeys(("xlam", "lfm2"), _chatml("tool")),
    "olmo3": _chatml("environment"),
    "seed_oss": _chatml("tool", "<seed:bos>", "<seed:eos>", ""),
    "internlm2": replace(
        _INTERN,
        tools=Place.AFTER_SYSTEM,
        tools_turn=("<|im_start|>system name=<|plugin|>\n", "<|im_end|>\n"),
        joint=_BARE,
    ),
    "k2_horizon": replace(
        _IFM, thought=("<ifm|think>\n", "\n</ifm|think>\n"), unthought="<ifm|think>\n</ifm|think>\n", joint=_LINE
    ),
    "llama3_json": _LLAMA3,
    "llama3_python_tag": _LLAMA3,
    "pythonic": _llama(_LLAMA3_HEADS, "<|eot_id|>", "<|eom_id|>", Place.SYSTEM),
    "llama4": replace(
        _llama(("<|header_start|>", "<|header_end|>\n\n"), "<|eot|>", "<|eom|>", Place.SYSTEM), joint=_BARE
    ),
    "functionary_v31": replace(
        _LLAMA3, tools=Place.BEFORE_SYSTEM, tools_turn=_LLAMA3_SYSTEM, pauses="<|eom_id|>", joint=_BARE
    ),
    "functionary_v32": replace(
        _headed(_LLAMA3_HEADS, "<|eot_id|>", "tool", Place.BEFORE_SYSTEM, "<|eot_id|>"),
        tools_turn=_LLAMA3_SYSTEM,
        text=(TO_ALL, ""),
        preamble=(TO_ALL, ""),
        joint=_BARE,
    ),
    "mistral_v2": _MISTRAL_OLD,
    "mistral_v3": _MISTRAL_OLD,
    "mistral_v7": replace(_MISTRAL_NEW, tools=Place.BEFORE_LAST_USER),
    "mistral_v11": _MISTRAL_NEW,
    "mistral_v13": _MISTRAL_NEW,
    "mistral_v15": _MISTRAL_NEW,
    "deepseek_v3": _DEEPSEEK_V3,
    "deepseek_v31": _DEEPSEEK_V31,
    "deepseek_v32": _DEEPSEEK_V32,
    "deepseek_v4": _DEEPSEEK_V4,
    "deepseek_v41": replace(_DEEPSEEK_V4, system=("<｜System｜>", "")),
    "gemma3": Turns(
        user=_GEMMA_USER, assistant=_GEMMA_MODEL, results=_GEMMA_USER, tools=Place.USER, stops=("<end_of_turn>",)
    ),
    "function_gemma": Turns(
        system=("<start_of_turn>developer\n", "<end_of_turn>\n"),
        user=_GEMMA_USER,
        assistant=_GEMMA_MODEL,
        results=_GEMMA_USER,
        apart=True,
        stops=("<end_of_turn>", "<start_function_response>"),
    ),
    "gemma4": Turns(
        system=("<|turn>system\n", "<turn|>\n"),
        user=("<|turn>user\n", "<turn|>\n"),
        assistant=("<|turn>model\n", "<turn|>\n"),
        pauses="",
        resumes="",
        joint=_BARE,
        stops=("<turn|>", "<|tool_response>"),
    ),
    "phi4": _PHI4,
    "functools": _PHI4,
    "granite3": Turns(
        system=(_ROLE.format("system"), "<|end_of_text|>\n"),
        user=(_ROLE.format("user"), "<|end_of_text|>\n"),
        assistant=(_ROLE.format("assistant"), "<|end_of_text|>\n"),
        results=("", "\n"),
        tools=Place.BEFORE_SYSTEM,
        tools_turn=("", "\n"),
        joint=_BARE,
        stops=("<|end_of_text|>",),
    ),
    "granite_20b_fc": Turns(
        system=("SYSTEM: ", "\n"),
        user=("\nUSER: ", "\n"),
        assistant=("\nASSISTANT:", "<|endoftext|>\n"),
        tools=Place.AFTER_SYSTEM,
        tools_turn=("", "\n\n\n"),
        text=(" ", " "),
        preamble=(" ", ""),
        joint=("\n", "\n"),
        pauses="\n<|endoftext|>\n",
        stops=("<|endoftext|>",),
    ),
    "nemotron": Turns(
        system=("<SPECIAL_10>System\n", "\n\n"),
        user=("<SPECIAL_11>User\n", "\n"),
        assistant=("<SPECIAL_11>Assistant\n", "\n<SPECIAL_12>\n"),
        results=("<SPECIAL_11>User\n", ""),
        joint=_LINE,
        stops=("<SPECIAL_12>",),
    ),
    "jamba": Turns(
        system=("<|bom|><|system|> ", "<|eom|>"),
        user=("<|bom|><|user|> ", "<|eom|>"),
        assistant=("<|bom|><|assistant|> ", "<|eom|>"),
        results=("<|bom|><|tool|> ", "<|eom|>"),
        apart=True,
        opening="<|bom|><|assistant|>",
        joint=_BARE,
        stops=("<|eom|>",),
    ),
    "apertus": Turns(
        system=("<|system_start|>", "<|system_end|>"),
        user=("<|user_start|>", "<|user_end|>"),
        assistant=("<|assistant_start|>", "<|assistant_end|>"),
        tools=Place.AFTER_SYSTEM,
        tools_turn=("<|developer_start|>Deliberation: disabled\nTool Capabilities:\n", "<|developer_end|>"),
        pauses="",
        resumes="",
        reopens=True,
        joint=_BARE,
        stops=("<|assistant_end|>",),
    ),
    "gigachat3": replace(
        _GIGACHAT, tools_turn=("function descriptions<|role_sep|>\n", "\n\n<|message_sep|>\n\n"), joint=_BARE
    ),
    "inkling": Turns(
        system=("<|message_system|><|content_text|>", _INKLING_END),
        user=("<|message_user|><|content_text|>", _INKLING_END),
        assistant=("<|message_model|>", "<|content_model_end_sampling|>"),
        tools=Place.BEFORE_SYSTEM,
        text=("<|content_text|>", _INKLING_END),
        preamble=("<|content_text|>", f"{_INKLING_END}<|message_model|>"),
        thought=("<|content_thinking|>", f"{_INKLING_END}<|message_model|>"),
        joint=_BARE,
        stops=("<|content_model_end_sampling|>",),
    ),
    "kimi_k2": Turns(
        system=("<|im_system|>system<|im_middle|>", _KIMI_END),
        user=("<|im_user|>user<|im_middle|>", _KIMI_END),
        assistant=("<|im_assistant|>assistant<|im_middle|>", _KIMI_END),
        tools=Place.BEFORE_SYSTEM,
        joint=_BARE,
        stops=(_KIMI_END,),
        ids=kimi.call_id,
    ),
    "kimi_k3": Turns(
        system=_kimi_k3("system"),
        user=_kimi_k3("user"),
        assistant=_kimi_k3("assistant"),
        tools=Place.BEFORE_SYSTEM,
        opening=_kimi_k3("assistant")[0] + kimi.RESPONSE[0],
        text=kimi.RESPONSE,
        preamble=kimi.RESPONSE,
        thought=kimi.THOUGHT,
        joint=("", "".join(kimi.RESPONSE)),
        stops=("<|end_of_msg|>",),
    ),
    "glm45": _glm("\n"),
    "glm47": _glm(""),
    "hunyuan_v3": Turns(
        system=("", "<｜reasoning_mode:opensource｜>reasoning_effort:no_think"),
        user=("<｜hy_User:opensource｜>", ""),
        assistant=(_HUNYUAN, _HUNYUAN_END),
        opening=_HUNYUAN + "".join(_HUNYUAN_THOUGHT),
        thought=_HUNYUAN_THOUGHT,
        unthought="".join(_HUNYUAN_THOUGHT),
        joint=_BARE,
        stops=(_HUNYUAN_END,),
    ),
    "minimax_m1": Turns(
        begins="<begin_of_document>",
        system=_minimax_m1("system ai_setting=assistant"),
        user=_minimax_m1("user name=user"),
        assistant=_minimax_m1("ai name=assistant"),
        results=_minimax_m1("tool name=tools"),
        apart=True,
        tools=Place.AFTER_SYSTEM,
        tools_turn=_minimax_m1("system tool_setting=tools"),
        joint=_LINE,
        stops=("<end_of_sentence>",),
    ),
    "minimax_m2": Turns(
        begins="]~!b[",
        system=_minimax("system"),
        user=_minimax("user"),
        assistant=_minimax("ai"),
        results=_minimax("tool"),
        joint=("\n", "\n"),
        stops=("[e~[",),
    ),
    "minimax_m3": Turns(
        begins="]~!b[",
        system=_minimax("developer"),
        user=_minimax("user"),
        assistant=_minimax("ai"),
        results=_minimax("tool"),
        thought=("<mm:think>", "</mm:think>"),
        unthought="</mm:think>",
        joint=_BARE,
        stops=("[e~[",),
    ),
    "dots": Turns(
        system=("<|system|>", "<|endofsystem|>"),
        user=("<|user|>", "<|endofuser|>"),
        assistant=("<|assistant|>", "<|endofassistant|>"),
        results=("<|user|>", "<|endofuser|>"),
        joint=("\n", "\n"),
        stops=("<|endofassistant|>",),
    ),
    "cohere": replace(
        _COHERE,
        opening=_cohere("CHATBOT")[0] + "".join(_COHERE_THOUGHT),
        text=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        thought=_COHERE_THOUGHT,
        unthought_calls="".join(_COHERE_THOUGHT),
        joint=_BARE,
        ids=cohere.counted,
    ),
    "command_r": replace(
        _COHERE,
        apart=True,
        joint=("\n", "\n"),
        pauses="",
        reminds=_REMINDED.join(_cohere("SYSTEM")),
    ),
    "command4": replace(
        _COHERE,
        system=_cohere("SYSTEM", _COHERE_TEXT),
        user=_cohere("USER", _COHERE_TEXT),
        tools=Place.BEFORE_SYSTEM,
        tools_turn=_cohere("SYSTEM", _COHERE_TEXT),
        text=_COHERE_TEXT,
        preamble=_COHERE_TEXT,
        thought=_COHERE_THOUGHT,
        unthought="".join(_COHERE_THOUGHT),
        joint=_BARE,
        ids=cohere.counted,
    ),
    "harmony": Turns(
        system=("<|start|>developer<|message|>", "<|end|>"),
        user=("<|start|>user<|message|>", "<|end|>"),
        assistant=("<|start|>assistant", ""),
        text=("<|channel|>final<|message|>", "<|end|>"),
        preamble=("<|channel|>commentary<|message|>", "<|end|><|start|>assistant"),
        thought=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        joint=_BARE,
        begins=(
            "<|start|>system<|message|># Valid channels: analysis, commentary, final. Channel must be included for "
            "every message.\nCalls to these tools must go to the commentary channel: 'functions'.<|end|>"
        ),
        stops=("<|call|>", "<|return|>"),
    ),
}
"""By the format's name. A format that is not here has no turns that we know of."""
