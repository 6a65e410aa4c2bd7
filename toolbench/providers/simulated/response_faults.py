"""Drifts of form: the player means the right thing and the answer says it in another shape. Each takes a well-formed
completion and changes it in place."""

import json
import random
from collections.abc import Callable

from toolbench.engine.types import JsonObject

ShapeFault = Callable[[JsonObject, random.Random], None]
MARKUP = '<script>window.__drift=1</script><img src=x onerror="window.__drift=1"><b>bold</b>'
BRACKET_COUNT = 100_000


def get_message(completion: JsonObject) -> JsonObject:
    message: JsonObject = completion["choices"][0]["message"]
    return message


def list_functions(completion: JsonObject) -> list[JsonObject]:
    return [call["function"] for call in get_message(completion).get("tool_calls", ())]


def function_call(completion: JsonObject, draw: random.Random) -> None:
    message = get_message(completion)
    message["function_call"] = message.pop("tool_calls")[0]["function"]
    completion["choices"][0]["finish_reason"] = "function_call"


def tool_calls_object(completion: JsonObject, draw: random.Random) -> None:
    message = get_message(completion)
    message["tool_calls"] = message["tool_calls"][0]


def arguments_object(completion: JsonObject, draw: random.Random) -> None:
    for function in list_functions(completion):
        function["arguments"] = json.loads(function["arguments"])


def arguments_blank(completion: JsonObject, draw: random.Random) -> None:
    for function in list_functions(completion):
        function["arguments"] = draw.choice(("", " ", "\n"))


def arguments_broken(completion: JsonObject, draw: random.Random) -> None:
    for function in list_functions(completion):
        function["arguments"] = function["arguments"].replace('"', "'").removesuffix("}") + ",}"


def arguments_twice_encoded(completion: JsonObject, draw: random.Random) -> None:
    for function in list_functions(completion):
        function["arguments"] = json.dumps(function["arguments"])


def arguments_fenced(completion: JsonObject, draw: random.Random) -> None:
    for function in list_functions(completion):
        function["arguments"] = f"```json\n{function['arguments']}\n```"


def arguments_cut(completion: JsonObject, draw: random.Random) -> None:
    """As when the token limit falls into the arguments."""
    function = list_functions(completion)[-1]
    function["arguments"] = function["arguments"][: max(1, len(function["arguments"]) // 2)]
    completion["choices"][0]["finish_reason"] = "length"


def arguments_of_brackets(completion: JsonObject, draw: random.Random) -> None:
    list_functions(completion)[-1]["arguments"] = "[" * BRACKET_COUNT


def ids_equal(completion: JsonObject, draw: random.Random) -> None:
    for call in get_message(completion)["tool_calls"]:
        call["id"] = "call_0"


def ids_blank(completion: JsonObject, draw: random.Random) -> None:
    for call in get_message(completion)["tool_calls"]:
        call["id"] = ""


def arguments_null(completion: JsonObject, draw: random.Random) -> None:
    for function in list_functions(completion):
        function["arguments"] = None


def type_missing(completion: JsonObject, draw: random.Random) -> None:
    for call in get_message(completion)["tool_calls"]:
        call.pop("type")


def finish_reason_stop(completion: JsonObject, draw: random.Random) -> None:
    completion["choices"][0]["finish_reason"] = "stop"


def finish_reason_calls(completion: JsonObject, draw: random.Random) -> None:
    """A finish reason that says calls, above an answer without any."""
    if not get_message(completion).get("tool_calls"):
        completion["choices"][0]["finish_reason"] = "tool_calls"


def parallel_wrapper(completion: JsonObject, draw: random.Random) -> None:
    """All calls inside one of multi_tool_use.parallel, which nobody offered."""
    calls = get_message(completion)["tool_calls"]
    uses = [
        {
            "recipient_name": f"functions.{call['function']['name']}",
            "parameters": json.loads(call["function"]["arguments"]),
        }
        for call in calls
    ]
    function = {"name": "multi_tool_use.parallel", "arguments": json.dumps({"tool_uses": uses})}
    get_message(completion)["tool_calls"] = [{**calls[0], "function": function}]


def names_with_tokens(completion: JsonObject, draw: random.Random) -> None:
    """Special tokens of gpt-oss in the name, as a server leaves them that reads its answers badly."""
    for function in list_functions(completion):
        function["name"] += "<|channel|>commentary"


def names_padded(completion: JsonObject, draw: random.Random) -> None:
    for function in list_functions(completion):
        function["name"] = f" {function['name']}\n"


def call_in_tags(completion: JsonObject, draw: random.Random) -> None:
    _move_call_to_text(completion, "<tool_call>\n{}\n</tool_call>")


def call_in_fence(completion: JsonObject, draw: random.Random) -> None:
    _move_call_to_text(completion, "Let me do that.\n```json\n{}\n```")


def call_as_json(completion: JsonObject, draw: random.Random) -> None:
    _move_call_to_text(completion, "{}")


def finish_reason_length(completion: JsonObject, draw: random.Random) -> None:
    """Whole calls under the finish reason `length`, as a server says that stopped counting at the limit."""
    completion["choices"][0]["finish_reason"] = "length"


def content_in_parts(completion: JsonObject, draw: random.Random) -> None:
    message = get_message(completion)
    message["content"] = [{"type": "text", "text": message["content"] or ""}]


def empty_text(completion: JsonObject, draw: random.Random) -> None:
    get_message(completion)["content"] = ""


def reasons_until_cut(completion: JsonObject, draw: random.Random) -> None:
    """A reasoning model under a small token limit: thoughts, and nothing said."""
    get_message(completion).update(content="", reasoning="The user wants one word. Let me think about which one it is")
    completion["choices"][0]["finish_reason"] = "length"
    completion["usage"]["completion_tokens_details"] = {"reasoning_tokens": completion["usage"]["completion_tokens"]}


def markup_everywhere(completion: JsonObject, draw: random.Random) -> None:
    """HTML and a script in every field that a page may show, in calls beside the right arguments."""
    completion["id"] = completion["model"] = completion["system_fingerprint"] = f"simulated {MARKUP}"
    completion["provider"] = MARKUP
    choice = completion["choices"][0]
    choice["finish_reason"] = f"{choice['finish_reason']} {MARKUP}"
    message = choice["message"]
    message["content"] = f"{message['content'] or ''} {MARKUP}"
    for call in message.get("tool_calls", ()):
        call["id"] = f"{call['id']}{MARKUP}"
        call["type"] = MARKUP
        call["function"]["name"] = f"{call['function']['name']}{MARKUP}"
        call["function"]["arguments"] = json.dumps({MARKUP: MARKUP})


def odd_characters(completion: JsonObject, draw: random.Random) -> None:
    """NUL and lone surrogates: legal in the JSON that models send, refused by databases."""
    message = get_message(completion)
    message["content"] = f"{message['content'] or ''}\x00\ud800 \udfff end"


def _move_call_to_text(completion: JsonObject, frame: str) -> None:
    message = get_message(completion)
    function = message.pop("tool_calls")[0]["function"]
    written = json.dumps({"name": function["name"], "arguments": json.loads(function["arguments"])})
    message["content"] = frame.replace("{}", written)
    completion["choices"][0]["finish_reason"] = "stop"


CALL_SHAPE_FAULTS: dict[str, ShapeFault] = {  # only where there are native calls
    drift.__name__: drift
    for drift in (
        function_call,
        tool_calls_object,
        arguments_object,
        arguments_blank,
        arguments_broken,
        arguments_twice_encoded,
        arguments_fenced,
        arguments_cut,
        arguments_of_brackets,
        ids_equal,
        ids_blank,
        names_padded,
        call_in_tags,
        call_in_fence,
        call_as_json,
        finish_reason_length,
        arguments_null,
        type_missing,
        finish_reason_stop,
        parallel_wrapper,
        names_with_tokens,
    )
}
ANY_SHAPE_FAULTS: dict[str, ShapeFault] = {
    drift.__name__: drift
    for drift in (
        content_in_parts,
        empty_text,
        finish_reason_calls,
        reasons_until_cut,
        markup_everywhere,
        odd_characters,
    )
}
