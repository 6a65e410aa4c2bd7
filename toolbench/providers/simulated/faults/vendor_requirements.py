"""Refusals of requests that do not meet requirements of some vendors.

The requirements concern earlier answers in the request (ids, signatures, reasoning) and tools (names, number, schemas).
A public function has the name of its fault in data/personas.json. It returns the refusal, or None if the request meets
the requirement.
"""

import json
import random
import re
from collections.abc import Iterator

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import ChatRequest
from toolbench.providers.simulated.error_replies import BuildFailure, Reply, build_error_reply
from toolbench.providers.simulated.faults.response import ShapeFault, get_message

_NINE_CHARACTER_ID = re.compile(r"[a-zA-Z0-9]{9}")
_KIMI_ID = re.compile(r"functions\.[^:]+:\d+")  # such as functions.state_get:0
_PLAIN_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_TOOLS = 100
REFUSED_KEYWORDS = ("oneOf", "patternProperties", "not")
_SIGNED_CONTENT = {"google": {"thought_signature": "c2ltdWxhdGVk"}}
_REASONING_DETAILS = [{"type": "reasoning.encrypted", "data": "c2ltdWxhdGVk", "index": 0}]


def ids_of_nine(request: ChatRequest) -> Reply | None:
    """Refuse ids that are not nine letters and digits (Mistral). The model's own ids are longer."""
    wrong_id = next(
        (str(call.get("id")) for call in _list_calls(request) if not _NINE_CHARACTER_ID.fullmatch(str(call.get("id")))),
        None,
    )
    message = f"Tool call id was {wrong_id} but must be a-z, A-Z, 0-9, with a length of 9"
    return None if wrong_id is None else _build_refusal(message)


def ids_of_kimi(request: ChatRequest) -> Reply | None:
    """Refuse ids that are not in Kimi's form.

    The model's own ids have this form, so a client must send them back unchanged.
    """
    has_other_id = any(not _KIMI_ID.fullmatch(str(call.get("id"))) for call in _list_calls(request))
    return _build_refusal("Unknown tool call id in the history") if has_other_id else None


def reasoning_demanded(request: ChatRequest) -> Reply | None:
    """Refuse answers with calls but without reasoning (DeepSeek). The model itself sends no reasoning."""
    is_missing = any("reasoning_content" not in message for message in request.messages_with_calls)
    text = "The reasoning_content in the thinking mode must be passed back to the API"
    return _build_refusal(text) if is_missing else None


def details_demanded(request: ChatRequest) -> Reply | None:
    """Refuse answers with calls whose reasoning details are missing or changed."""
    is_changed = any(message.get("reasoning_details") != _REASONING_DETAILS for message in request.messages_with_calls)
    return _build_refusal("reasoning_details were changed or left out") if is_changed else None


def signatures_demanded(request: ChatRequest) -> Reply | None:
    """Refuse calls without the signature that the model sent with them (Gemini)."""
    is_missing = any(call.get("extra_content") != _SIGNED_CONTENT for call in _list_calls(request))
    return _build_refusal("Function call is missing a thought_signature") if is_missing else None


def any_signature_demanded(request: ChatRequest) -> Reply | None:
    """Refuse calls without a signature, although the model sends none, as behind a router that removes signatures.

    Every signature is accepted, so a client can send the value that skips the vendor's check.
    """
    is_missing = any("signature" not in call for call in _list_calls(request))
    return _build_refusal("Function call is missing a thought_signature") if is_missing else None


def plain_tools(request: ChatRequest) -> Reply | None:
    """Refuse unusual names of tools, more than `MAX_TOOLS` tools and the keywords in `REFUSED_KEYWORDS`.

    A refusal names the first such name or keyword only.
    """
    wrong_name = next((tool["name"] for tool in request.functions if not _PLAIN_NAME.fullmatch(tool["name"])), "")
    if wrong_name:
        return _build_refusal(f"Invalid name of a tool: {wrong_name}")
    if len(request.functions) > MAX_TOOLS:
        return _build_refusal(f"At most {MAX_TOOLS} tools are taken; there are {len(request.functions)}")
    schemas = json.dumps([tool.get("parameters") for tool in request.functions])
    keyword = next((keyword for keyword in REFUSED_KEYWORDS if f'"{keyword}":' in schemas), "")
    return _build_refusal(f'Unknown name "{keyword}": no such field in a schema') if keyword else None


def _list_calls(request: ChatRequest) -> Iterator[JsonObject]:
    for message in request.messages_with_calls:
        yield from (call for call in message["tool_calls"] if isinstance(call, dict))


def _build_refusal(message: str) -> Reply:
    return build_error_reply(400, f"{message} (simulated)", "invalid_request_error")


def _set_kimi_ids(completion: JsonObject, generator: random.Random) -> None:
    for index, call in enumerate(get_message(completion)["tool_calls"]):
        call["id"] = f"functions.{call['function']['name']}:{index}"


def _add_reasoning_details(completion: JsonObject, generator: random.Random) -> None:
    get_message(completion)["reasoning_details"] = [dict(detail) for detail in _REASONING_DETAILS]


def _add_signatures(completion: JsonObject, generator: random.Random) -> None:
    for call in get_message(completion)["tool_calls"]:
        call["extra_content"] = _SIGNED_CONTENT


_REQUIREMENT_CHECKS: tuple[BuildFailure, ...] = (
    ids_of_nine,
    ids_of_kimi,
    reasoning_demanded,
    details_demanded,
    signatures_demanded,
    any_signature_demanded,
    plain_tools,
)
REQUIREMENTS: dict[str, BuildFailure] = {check.__name__: check for check in _REQUIREMENT_CHECKS}
# By requirement, the function that makes the model's own answers meet it.
REQUIREMENT_ADDITIONS: dict[str, ShapeFault] = {
    ids_of_kimi.__name__: _set_kimi_ids,
    details_demanded.__name__: _add_reasoning_details,
    signatures_demanded.__name__: _add_signatures,
}
