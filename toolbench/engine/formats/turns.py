"""The tokens around what each side of a conversation says: a family's own way of writing turns.

Where they were found: the model cards' chat templates, vLLM's tool_chat_template_*.jinja and encoders, mistral-common's
samples and templates. No value here begins with the token that opens every sequence (`<s>`, `<|begin_of_text|>`,
`<bos>` …): servers put it in front of a prompt themselves."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from toolbench.engine.formats.families import kimi, mistral
from toolbench.engine.formats.values import TextCall

Frame: TypeAlias = tuple[str, str]
NOTHING: Frame = ("", "")


class Place(Enum):
    """Where the tools are told: at the end of the system text, in front of the first or the last user's text, or as a
    turn of their own before the system's, behind it, or before the last user's."""

    SYSTEM = "system"
    USER = "user"
    BEFORE_SYSTEM = "before system"
    AFTER_SYSTEM = "after system"
    BEFORE_LAST_USER = "before last user"


@dataclass(frozen=True, slots=True)
class Turns:
    """What stands before and after each side's words. `system` None: such a text goes in front of the next user's.

    `text` is around what the assistant says to the user, `preamble` around the same before calls. An assistant's turn
    that calls ends with `pauses`, and after results the assistant goes on with `resumes`; None for either means: as
    always. `stops` end an answer. `ids` makes an id that can be written of a call and its place in the conversation;
    None where any can, or none is."""

    user: Frame
    assistant: Frame
    stops: tuple[str, ...]
    system: Frame | None = None
    results: Frame = NOTHING
    tools: Place = Place.SYSTEM
    tools_turn: Frame = NOTHING
    begins: str = ""
    opening: str | None = None
    pauses: str | None = None
    resumes: str | None = None
    text: Frame = NOTHING
    preamble: Frame = NOTHING
    ids: Callable[[TextCall, int], str] | None = None

    @property
    def asks(self) -> str:
        """What begins the assistant's turn that is asked for."""
        return self.assistant[0] if self.opening is None else self.opening


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
    )


def _chatml(results: str, begin: str = "<|im_start|>", end: str = "<|im_end|>") -> Turns:
    return _headed((begin, "\n"), f"{end}\n", results, Place.SYSTEM, end)


def _llama(heads: Frame, end: str, more: str, tools: Place) -> Turns:
    return _headed(heads, end, "ipython", tools, end, more)


_LLAMA3_HEADS: Frame = ("<|start_header_id|>", "<|end_header_id|>\n\n")
_LLAMA3 = _llama(_LLAMA3_HEADS, "<|eot_id|>", "<|eom_id|>", Place.USER)
_MISTRAL: Frame = ("[INST] ", "[/INST]")
_MISTRAL_OLD = Turns(
    user=_MISTRAL,
    assistant=(" ", "</s>"),
    tools=Place.BEFORE_LAST_USER,
    opening="",
    stops=("</s>",),
    ids=mistral.call_id,
)
_MISTRAL_NEW = Turns(
    system=("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    user=("[INST]", "[/INST]"),
    assistant=("", "</s>"),
    tools=Place.AFTER_SYSTEM,
    stops=("</s>",),
    ids=mistral.call_id,
)
_DEEPSEEK_END = "<｜end▁of▁sentence｜>"
_DEEPSEEK_V3 = Turns(
    system=NOTHING,
    user=("<｜User｜>", ""),
    assistant=("<｜Assistant｜>", _DEEPSEEK_END),
    resumes="",
    stops=(_DEEPSEEK_END,),
)
_DEEPSEEK_V31 = Turns(
    system=NOTHING,
    user=_DEEPSEEK_V3.user,
    assistant=("<｜Assistant｜></think>", _DEEPSEEK_END),
    resumes="",
    stops=(_DEEPSEEK_END,),
)
_DEEPSEEK_V32 = Turns(
    system=NOTHING,
    user=_DEEPSEEK_V3.user,
    assistant=_DEEPSEEK_V31.assistant,
    results=("\n\n", "\n\n</think>"),
    resumes="",
    stops=(_DEEPSEEK_END,),
)
_DEEPSEEK_V4 = Turns(
    system=NOTHING,
    user=_DEEPSEEK_V3.user,
    assistant=_DEEPSEEK_V31.assistant,
    results=_DEEPSEEK_V3.user,
    stops=(_DEEPSEEK_END,),
)
_GEMMA_USER, _GEMMA_MODEL = ("<start_of_turn>user\n", "<end_of_turn>\n"), ("<start_of_turn>model\n", "<end_of_turn>\n")
_PHI4 = Turns(
    system=("<|system|>", "<|end|>"),
    user=("<|user|>", "<|end|>"),
    assistant=("<|assistant|>", "<|end|>"),
    results=("<|tool_response|>", "<|end|>"),  # no official source says how; this token is in the vocabulary
    stops=("<|end|>",),
)
_ROLE = "<|start_of_role|>{}<|end_of_role|>"
_COHERE_TURN, _COHERE_END = "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"
_KIMI_END = "<|im_end|>"
_INTERN = _chatml("environment name=<|plugin|>")


def _glm(line: str) -> Turns:
    return Turns(
        begins="[gMASK]<sop>",
        system=(f"<|system|>{line}", ""),
        user=(f"<|user|>{line}", ""),
        assistant=(f"<|assistant|>{line}", ""),
        stops=("<|user|>", "<|observation|>", "<|endoftext|>"),
    )


TURNS: dict[str, Turns] = {
    "hermes": _chatml("user"),
    "qwen3_coder": _chatml("user"),
    "lfm2": _chatml("tool"),
    "olmo3": _chatml("environment"),
    "seed_oss": _chatml("tool", "<seed:bos>", "<seed:eos>"),
    "internlm2": Turns(
        system=_INTERN.system,
        user=_INTERN.user,
        assistant=_INTERN.assistant,
        results=_INTERN.results,
        tools=Place.AFTER_SYSTEM,
        tools_turn=("<|im_start|>system name=<|plugin|>\n", "<|im_end|>\n"),
        stops=_INTERN.stops,
    ),
    "llama3_json": _LLAMA3,
    "llama3_python_tag": _LLAMA3,
    "pythonic": _llama(_LLAMA3_HEADS, "<|eot_id|>", "<|eom_id|>", Place.SYSTEM),
    "llama4": _llama(("<|header_start|>", "<|header_end|>\n\n"), "<|eot|>", "<|eom|>", Place.SYSTEM),
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
        stops=("<end_of_turn>", "<start_function_response>"),
    ),
    "gemma4": Turns(
        system=("<|turn>system\n", "<turn|>\n"),
        user=("<|turn>user\n", "<turn|>\n"),
        assistant=("<|turn>model\n", "<turn|>\n"),
        pauses="",
        resumes="",
        stops=("<turn|>", "<|tool_response>"),
    ),
    "phi4": _PHI4,
    "functools": _PHI4,
    "granite3": Turns(
        system=(_ROLE.format("system"), "<|end_of_text|>\n"),
        user=(_ROLE.format("user"), "<|end_of_text|>\n"),
        assistant=(_ROLE.format("assistant"), "<|end_of_text|>\n"),
        results=("", "\n"),
        tools=Place.AFTER_SYSTEM,
        tools_turn=("", "\n"),
        stops=("<|end_of_text|>",),
    ),
    "kimi_k2": Turns(
        system=("<|im_system|>system<|im_middle|>", _KIMI_END),
        user=("<|im_user|>user<|im_middle|>", _KIMI_END),
        assistant=("<|im_assistant|>assistant<|im_middle|>", _KIMI_END),
        tools=Place.BEFORE_SYSTEM,
        stops=(_KIMI_END,),
        ids=kimi.call_id,
    ),
    "glm45": _glm("\n"),
    "glm47": _glm(""),
    "minimax_m2": Turns(
        begins="]~!b[",
        system=("]~b]system\n", "[e~[\n"),
        user=("]~b]user\n", "[e~[\n"),
        assistant=("]~b]ai\n", "[e~[\n"),
        results=("]~b]tool\n", "[e~[\n"),
        stops=("[e~[",),
    ),
    "cohere": Turns(
        system=(f"{_COHERE_TURN}<|SYSTEM_TOKEN|>", _COHERE_END),
        user=(f"{_COHERE_TURN}<|USER_TOKEN|>", _COHERE_END),
        assistant=(f"{_COHERE_TURN}<|CHATBOT_TOKEN|>", _COHERE_END),
        results=(f"{_COHERE_TURN}<|SYSTEM_TOKEN|>", _COHERE_END),
        text=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        stops=(_COHERE_END,),
    ),
    "harmony": Turns(
        system=("<|start|>developer<|message|>", "<|end|>"),
        user=("<|start|>user<|message|>", "<|end|>"),
        assistant=("<|start|>assistant", ""),
        text=("<|channel|>final<|message|>", "<|end|>"),
        preamble=("<|channel|>commentary<|message|>", "<|end|><|start|>assistant"),
        begins=(
            "<|start|>system<|message|># Valid channels: analysis, commentary, final. Channel must be included for "
            "every message.\nCalls to these tools must go to the commentary channel: 'functions'.<|end|>"
        ),
        stops=("<|call|>", "<|return|>"),
    ),
}
"""By the format's name. A format that is not here has no turns that we know of."""
