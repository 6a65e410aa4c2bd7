"""Llama 3.1, 3.2 and 3.3: one JSON object, with or without <|python_tag|>."""

from toolbench.engine.formats.definition import Block, Format, Holds, Layout, Prompt
from toolbench.engine.formats.families.generic_json import bare_json
from toolbench.engine.formats.families.qwen_coder import FUNCTION_BLOCK
from toolbench.engine.formats.json_calls import JsonCalls
from toolbench.engine.formats.python_calls import PythonCalls
from toolbench.engine.formats.writing import as_json, json_call, tool_list

TAG = "<|python_tag|>"
ENDS = ("<|eom_id|>", "<|eot_id|>")
_PROMPT = Prompt(
    tool_list(
        "Given the following functions, answer with a JSON for a function call that helps with the prompt. Write it as "
        '{"name": function name, "parameters": dictionary of argument name and its value}. Do not use variables.\n\n',
        "\n\n",
        indent=4,
    ),
    as_json(output="content"),
    role="ipython",
)
_BLOCKS = (
    Block(TAG, JsonCalls(), ENDS, (TAG,), starts=("{", "["), values=True),
    Block(TAG, PythonCalls(suffix=".call"), ENDS, (TAG,)),  # built-in tools: brave_search.call(query="…")
    FUNCTION_BLOCK,  # as Meta's documentation writes custom tools
)
_HOLDS = Holds(name=r"[^\s<|｜]+")

LLAMA3_JSON = Format(
    "llama3_json",
    _BLOCKS,
    Layout(json_call(arguments="parameters"), between="; "),
    _PROMPT,
    dropped=ENDS,
    bare=bare_json,
    holds=_HOLDS,
)
LLAMA3_PYTHON_TAG = Format(
    "llama3_python_tag",
    _BLOCKS,
    Layout(json_call(before=TAG, after=ENDS[0]), between=""),
    _PROMPT,
    dropped=ENDS,
    bare=bare_json,
    holds=_HOLDS,
)
