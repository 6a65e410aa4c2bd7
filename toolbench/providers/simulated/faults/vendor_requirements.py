"""Requirements of some vendors on requests, as refusals by simulated models.

They concern the history (form of ids, signatures and reasoning sent back) and tools (names, number, schemas). Each
public function returns the refusal, or None when the request meets the requirement.
"""

import json
import random
import re
from collections.abc import Callable, Iterator

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import ChatRequest
from toolbench.providers.simulated.error_replies import BuildFailure, Reply, build_error_reply
from toolbench.providers.simulated.faults.response import ShapeFault, get_message

_NINE_CHARACTER_ID = re.compile(r"[a-zA-Z0-9]{9}")
_KIMI_ID = re.compile(r"functions\.[^:]+:\d+")
_PLAIN_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_TOOLS = 100
REFUSED_KEYWORDS = ("oneOf", "patternProperties", "not")
_SIGNED_CONTENT = {"google": {"thought_signature": "c2ltdWxhdGVk"}}
_REASONING_DETAILS = [{"type": "reasoning.encrypted", "data": "c2ltdWxhdGVk", "index": 0}]


def ids_of_nine(conversation: ChatRequest) -> Reply | None:
    """Refuse ids that are not nine letters and digits (Mistral), at a host that itself gives longer ids."""
    wrong = next(
        (
            str(call.get("id"))
            for call in _list_calls(conversation)
            if not _NINE_CHARACTER_ID.fullmatch(str(call.get("id")))
        ),
        "",
    )
    return _build_refusal(f"Tool call id was {wrong} but must be a-z, A-Z, 0-9, with a length of 9") if wrong else None


def ids_of_kimi(conversation: ChatRequest) -> Reply | None:
    """Refuse ids that are not in Kimi's form, which must come back unchanged."""
    wrong = any(not _KIMI_ID.fullmatch(str(call.get("id"))) for call in _list_calls(conversation))
    return _build_refusal("Unknown tool call id in the history") if wrong else None


def reasoning_demanded(conversation: ChatRequest) -> Reply | None:
    """Refuse answers with calls but without reasoning (DeepSeek), at a host that sends no reasoning."""
    missing = any("reasoning_content" not in message for message in conversation.messages_with_calls)
    text = "The reasoning_content in the thinking mode must be passed back to the API"
    return _build_refusal(text) if missing else None


def details_demanded(conversation: ChatRequest) -> Reply | None:
    """Refuse answers with calls whose reasoning details are missing or changed."""
    missing = any(
        message.get("reasoning_details") != _REASONING_DETAILS for message in conversation.messages_with_calls
    )
    return _build_refusal("reasoning_details were changed or left out") if missing else None


def signatures_demanded(conversation: ChatRequest) -> Reply | None:
    """Refuse calls without the signature that came with them (Gemini)."""
    missing = any(call.get("extra_content") != _SIGNED_CONTENT for call in _list_calls(conversation))
    return _build_refusal("Function call is missing a thought_signature") if missing else None


def any_signature_demanded(conversation: ChatRequest) -> Reply | None:
    """Refuse calls without a signature, at a router that removes signatures from answers.

    Any value is accepted, so a client can send the one that skips the check.
    """
    missing = any("signature" not in call for call in _list_calls(conversation))
    return _build_refusal("Function call is missing a thought_signature") if missing else None


def plain_tools(conversation: ChatRequest) -> Reply | None:
    """Refuse tools whose names, number or schema keywords the endpoint does not accept.

    A refusal names one name or keyword at a time.
    """
    wrong = next((tool["name"] for tool in conversation.functions if not _PLAIN_NAME.fullmatch(tool["name"])), "")
    if wrong:
        return _build_refusal(f"Invalid name of a tool: {wrong}")
    if len(conversation.functions) > MAX_TOOLS:
        return _build_refusal(f"At most {MAX_TOOLS} tools are taken; there are {len(conversation.functions)}")
    schemas = json.dumps([tool.get("parameters") for tool in conversation.functions])
    keyword = next((keyword for keyword in REFUSED_KEYWORDS if f'"{keyword}":' in schemas), "")
    return _build_refusal(f'Unknown name "{keyword}": no such field in a schema') if keyword else None


def _list_calls(conversation: ChatRequest) -> Iterator[JsonObject]:
    for message in conversation.messages_with_calls:
        yield from (call for call in message["tool_calls"] if isinstance(call, dict))


def _build_refusal(message: str) -> Reply:
    return build_error_reply(400, f"{message} (simulated)", "invalid_request_error")


def _set_kimi_ids(completion: JsonObject, draw: random.Random) -> None:
    for place, call in enumerate(get_message(completion)["tool_calls"]):
        call["id"] = f"functions.{call['function']['name']}:{place}"


def _add_reasoning_details(completion: JsonObject, draw: random.Random) -> None:
    get_message(completion)["reasoning_details"] = [dict(detail) for detail in _REASONING_DETAILS]


def _add_signatures(completion: JsonObject, draw: random.Random) -> None:
    for call in get_message(completion)["tool_calls"]:
        call["extra_content"] = _SIGNED_CONTENT


_REQUIREMENT_CHECKS: tuple[Callable[[ChatRequest], Reply | None], ...] = (
    ids_of_nine,
    ids_of_kimi,
    reasoning_demanded,
    details_demanded,
    signatures_demanded,
    any_signature_demanded,
    plain_tools,
)
REQUIREMENTS: dict[str, BuildFailure] = {demand.__name__: demand for demand in _REQUIREMENT_CHECKS}
REQUIREMENT_ADDITIONS: dict[str, ShapeFault] = {
    ids_of_kimi.__name__: _set_kimi_ids,
    details_demanded.__name__: _add_reasoning_details,
    signatures_demanded.__name__: _add_signatures,
}
"""What the answers of those who demand it bring along, by the demand's name."""
