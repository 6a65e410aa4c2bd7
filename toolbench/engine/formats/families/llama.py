"""Llama 3.1, 3.2 and 3.3: a JSON object for each call, with or without `<|python_tag|>` before it."""

from toolbench.engine.formats.call_writers import (
    build_json_call_writer,
    build_json_result_writer,
    build_tool_list_writer,
)
from toolbench.engine.formats.families.generic_json import build_bare_json_blocks
from toolbench.engine.formats.families.qwen_coder import FUNCTION_BLOCK
from toolbench.engine.formats.json_calls import JsonCallReader
from toolbench.engine.formats.python_calls import PythonCallReader
from toolbench.engine.formats.specification import Block, CallLayout, PromptLayout, RoundTripLimits, TextFormat

PYTHON_TAG = "<|python_tag|>"
END_TOKENS = ("<|eom_id|>", "<|eot_id|>")
_PROMPT = PromptLayout(
    build_tool_list_writer(
        "Given the following functions, answer with a JSON for a function call that helps with the prompt. Write it as "
        '{"name": function name, "parameters": dictionary of argument name and its value}. Do not use variables.\n\n',
        "\n\n",
        indent_spaces=4,
    ),
    build_json_result_writer(output="content"),
)
_BLOCKS = (
    Block(PYTHON_TAG, JsonCallReader(), END_TOKENS, (PYTHON_TAG,), body_starts=("{", "["), ends_after_values=True),
    # Built-in tools: brave_search.call(query="…").
    Block(PYTHON_TAG, PythonCallReader(suffix=".call"), END_TOKENS, (PYTHON_TAG,)),
    FUNCTION_BLOCK,  # as Meta's documentation writes custom tools
)
_ROUND_TRIP_LIMITS = RoundTripLimits(name_pattern=r"[^\s<|｜]+")

LLAMA3_JSON = TextFormat(
    "llama3_json",
    _BLOCKS,
    CallLayout(build_json_call_writer(arguments_key="parameters"), between_calls="; "),
    _PROMPT,
    dropped_tokens=END_TOKENS,
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=_ROUND_TRIP_LIMITS,
)
LLAMA3_PYTHON_TAG = TextFormat(
    "llama3_python_tag",
    _BLOCKS,
    CallLayout(build_json_call_writer(prefix=PYTHON_TAG, suffix=END_TOKENS[0]), between_calls=""),
    _PROMPT,
    dropped_tokens=END_TOKENS,
    build_bare_blocks=build_bare_json_blocks,
    round_trip_limits=_ROUND_TRIP_LIMITS,
)
