"""Faults of form: the simulated model gives the right answer in a wrong or unusual form.

A fault function has the name of its fault in data/personas.json. It changes a well-formed completion in place.
"""

import json
import random
from collections.abc import Callable

from toolbench.engine.types import JsonObject

ShapeFault = Callable[[JsonObject, random.Random], None]
MARKUP = '<script>window.__drift=1</script><img src=x onerror="window.__drift=1"><b>bold</b>'
BRACKET_COUNT = 100_000


def get_message(completion: JsonObject) -> JsonObject:
    """Return the message of the first choice."""
    message: JsonObject = completion["choices"][0]["message"]
    return message


def list_functions(completion: JsonObject) -> list[JsonObject]:
    """Return the function (name and arguments) of every call."""
    return [call["function"] for call in get_message(completion).get("tool_calls", ())]


def function_call(completion: JsonObject, generator: random.Random) -> None:
    """Move the first call to the older field `function_call`, and remove the others."""
    message = get_message(completion)
    message["function_call"] = message.pop("tool_calls")[0]["function"]
    completion["choices"][0]["finish_reason"] = "function_call"


def tool_calls_object(completion: JsonObject, generator: random.Random) -> None:
    """Replace the list of calls by its first item."""
    message = get_message(completion)
    message["tool_calls"] = message["tool_calls"][0]


def arguments_object(completion: JsonObject, generator: random.Random) -> None:
    """Send arguments as an object instead of a JSON text."""
    for function in list_functions(completion):
        function["arguments"] = json.loads(function["arguments"])


def arguments_blank(completion: JsonObject, generator: random.Random) -> None:
    """Replace arguments by an empty text or white space."""
    for function in list_functions(completion):
        function["arguments"] = generator.choice(("", " ", "\n"))


def arguments_broken(completion: JsonObject, generator: random.Random) -> None:
    """Write arguments with single quotes and a trailing comma."""
    for function in list_functions(completion):
        function["arguments"] = function["arguments"].replace('"', "'").removesuffix("}") + ",}"


def arguments_twice_encoded(completion: JsonObject, generator: random.Random) -> None:
    """Encode arguments as JSON twice."""
    for function in list_functions(completion):
        function["arguments"] = json.dumps(function["arguments"])


def arguments_fenced(completion: JsonObject, generator: random.Random) -> None:
    """Put arguments into a code fence."""
    for function in list_functions(completion):
        function["arguments"] = f"```json\n{function['arguments']}\n```"


def arguments_cut(completion: JsonObject, generator: random.Random) -> None:
    """Truncate the last call's arguments as if the token limit was reached in them."""
    function = list_functions(completion)[-1]
    function["arguments"] = function["arguments"][: max(1, len(function["arguments"]) // 2)]
    completion["choices"][0]["finish_reason"] = "length"


def arguments_of_brackets(completion: JsonObject, generator: random.Random) -> None:
    """Replace the last call's arguments by `BRACKET_COUNT` opening brackets."""
    list_functions(completion)[-1]["arguments"] = "[" * BRACKET_COUNT


def ids_equal(completion: JsonObject, generator: random.Random) -> None:
    """Give every call the same id."""
    for call in get_message(completion)["tool_calls"]:
        call["id"] = "call_0"


def ids_blank(completion: JsonObject, generator: random.Random) -> None:
    """Give every call an empty id."""
    for call in get_message(completion)["tool_calls"]:
        call["id"] = ""


def arguments_null(completion: JsonObject, generator: random.Random) -> None:
    """Replace arguments by null."""
    for function in list_functions(completion):
        function["arguments"] = None


def type_missing(completion: JsonObject, generator: random.Random) -> None:
    """Remove the field `type` of every call."""
    for call in get_message(completion)["tool_calls"]:
        call.pop("type")


def finish_reason_stop(completion: JsonObject, generator: random.Random) -> None:
    """Set the finish reason `stop` although there are calls."""
    completion["choices"][0]["finish_reason"] = "stop"


def finish_reason_calls(completion: JsonObject, generator: random.Random) -> None:
    """Set the finish reason `tool_calls` although there is no call."""
    if not get_message(completion).get("tool_calls"):
        completion["choices"][0]["finish_reason"] = "tool_calls"


def parallel_wrapper(completion: JsonObject, generator: random.Random) -> None:
    """Put all calls into one call of `multi_tool_use.parallel`, a tool that is not offered."""
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


def names_with_tokens(completion: JsonObject, generator: random.Random) -> None:
    """Add special tokens of gpt-oss to names, as servers do that parse its answers incorrectly."""
    for function in list_functions(completion):
        function["name"] += "<|channel|>commentary"


def names_padded(completion: JsonObject, generator: random.Random) -> None:
    """Surround names with white space."""
    for function in list_functions(completion):
        function["name"] = f" {function['name']}\n"


def call_in_tags(completion: JsonObject, generator: random.Random) -> None:
    """Write the first call as text in `<tool_call>` tags, and remove the others."""
    _move_call_to_text(completion, "<tool_call>\n{}\n</tool_call>")


def call_in_fence(completion: JsonObject, generator: random.Random) -> None:
    """Write the first call as text in a code fence after a sentence, and remove the others."""
    _move_call_to_text(completion, "Let me do that.\n```json\n{}\n```")


def call_as_json(completion: JsonObject, generator: random.Random) -> None:
    """Write the first call as text that is only JSON, and remove the others."""
    _move_call_to_text(completion, "{}")


def finish_reason_length(completion: JsonObject, generator: random.Random) -> None:
    """Set the finish reason `length` although the calls are complete."""
    completion["choices"][0]["finish_reason"] = "length"


def content_in_parts(completion: JsonObject, generator: random.Random) -> None:
    """Send the content as an array with one text part."""
    message = get_message(completion)
    message["content"] = [{"type": "text", "text": message["content"] or ""}]


def empty_text(completion: JsonObject, generator: random.Random) -> None:
    """Replace the content by an empty text."""
    get_message(completion)["content"] = ""


def reasons_until_cut(completion: JsonObject, generator: random.Random) -> None:
    """Send only reasoning, as a reasoning model does under a small token limit."""
    get_message(completion).update(content="", reasoning="The user wants one word. Let me think about which one it is")
    completion["choices"][0]["finish_reason"] = "length"
    completion["usage"]["completion_tokens_details"] = {"reasoning_tokens": completion["usage"]["completion_tokens"]}


def markup_everywhere(completion: JsonObject, generator: random.Random) -> None:
    """Put HTML and a script into every field that a page may show; the arguments of calls are replaced."""
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


def odd_characters(completion: JsonObject, generator: random.Random) -> None:
    """Add NUL and lone surrogates to the content, which are valid in JSON but refused by databases."""
    message = get_message(completion)
    message["content"] = f"{message['content'] or ''}\x00\ud800 \udfff end"


def _move_call_to_text(completion: JsonObject, text_template: str) -> None:
    """Remove the calls and write the first one as JSON in place of {} in the template."""
    message = get_message(completion)
    function = message.pop("tool_calls")[0]["function"]
    call_text = json.dumps({"name": function["name"], "arguments": json.loads(function["arguments"])})
    message["content"] = text_template.replace("{}", call_text)
    completion["choices"][0]["finish_reason"] = "stop"


CALL_SHAPE_FAULTS: dict[str, ShapeFault] = {  # only for completions with native calls
    fault.__name__: fault
    for fault in (
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
ANY_SHAPE_FAULTS: dict[str, ShapeFault] = {  # for every completion
    fault.__name__: fault
    for fault in (
        content_in_parts,
        empty_text,
        finish_reason_calls,
        reasons_until_cut,
        markup_everywhere,
        odd_characters,
    )
}
