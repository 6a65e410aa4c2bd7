"""Llama 3.1, 3.2 and 3.3: one JSON object, with or without <|python_tag|>."""

from toolbench.engine.formats.call_writers import json_call_writer, json_result_writer, tool_list_writer
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.qwen_coder import FUNCTION_BLOCK
from toolbench.engine.formats.json_calls import JsonCallReader
from toolbench.engine.formats.python_calls import PythonCallReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat

TAG = "<|python_tag|>"
ENDS = ("<|eom_id|>", "<|eot_id|>")
_PROMPT = PromptLayout(
    tool_list_writer(
        "Given the following functions, answer with a JSON for a function call that helps with the prompt. Write it as "
        '{"name": function name, "parameters": dictionary of argument name and its value}. Do not use variables.\n\n',
        "\n\n",
        indent=4,
    ),
    json_result_writer(output="content"),
    role="ipython",
)
_BLOCKS = (
    Block(TAG, JsonCallReader(), ENDS, (TAG,), starts=("{", "["), values=True),
    Block(TAG, PythonCallReader(suffix=".call"), ENDS, (TAG,)),  # built-in tools: brave_search.call(query="…")
    FUNCTION_BLOCK,  # as Meta's documentation writes custom tools
)
_ROUND_TRIP_LIMITS = RoundTripLimits(name=r"[^\s<|｜]+")

LLAMA3_JSON = TextFormat(
    "llama3_json",
    _BLOCKS,
    CallLayout(json_call_writer(arguments="parameters"), between="; "),
    _PROMPT,
    dropped=ENDS,
    bare=build_bare_json_blocks,
    holds=_ROUND_TRIP_LIMITS,
)
LLAMA3_PYTHON_TAG = TextFormat(
    "llama3_python_tag",
    _BLOCKS,
    CallLayout(json_call_writer(before=TAG, after=ENDS[0]), between=""),
    _PROMPT,
    dropped=ENDS,
    bare=build_bare_json_blocks,
    holds=_ROUND_TRIP_LIMITS,
)
