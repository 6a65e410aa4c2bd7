"""Error replies that a simulated model sends instead of a completion.

A function that takes a request has the name of its fault in data/personas.json. It returns the reply to that request,
or None if the model answers the request normally.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from toolbench.providers.simulated.chat_request import ChatRequest

JSON_TYPE, HTML_TYPE, EVENTS_TYPE = "application/json", "text/html; charset=utf-8", "text/event-stream"
NESTING_DEPTH = 100_000


@dataclass(frozen=True, slots=True)
class Reply:
    """HTTP response of the server of simulated models.

    Attributes:
        body: the body of a response without a stream.
        headers: headers besides Content-Type.
        chunks: the body of a streamed response; () for a response without a stream.
        hangs: whether the request is never answered.
        drops: whether the connection is closed without a response.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = JSON_TYPE
    headers: dict[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] = ()
    hangs: bool = False
    drops: bool = False


BuildFailure = Callable[[ChatRequest], Reply | None]


def build_error_reply(status: int, message: str, error_type: str, **members: object) -> Reply:
    """Build an error in OpenAI's format; `members` are further members of the error object."""
    error = {"code": status, "message": message, "type": error_type} | members
    return Reply(json.dumps({"error": error}).encode(), status)


def model_format_error(request: ChatRequest) -> Reply:
    """Return llama.cpp's error for model output that cannot be parsed."""
    text = "The model produced output that does not match the expected peg-native format"
    return build_error_reply(500, text, "server_error")


def error_inside_200(request: ChatRequest) -> Reply:
    """Return an error object with status 200."""
    return Reply(build_error_reply(502, "Upstream is overloaded (simulated)", "upstream_error").body)


def html_200(request: ChatRequest) -> Reply:
    """Return the sign-in page of a network with status 200."""
    return Reply(
        b"<!doctype html><title>Please sign in</title><h1>Sign in to the network (simulated)</h1>", 200, HTML_TYPE
    )


def half_a_body(request: ChatRequest) -> Reply:
    """Return a completion whose JSON is truncated."""
    return Reply(b'{"id": "sim-half", "choices": [{"index": 0, "message": {"role": "assis')


def nested_body(request: ChatRequest) -> Reply:
    """Return `NESTING_DEPTH` opening brackets, which JSON parsers refuse as nested too deeply."""
    return Reply(b"[" * NESTING_DEPTH)


def rate_limited(request: ChatRequest) -> Reply:
    """Return status 429 with a `Retry-After` of one second."""
    refusal = build_error_reply(429, "Too many requests (simulated)", "rate_limit_error")
    return Reply(refusal.body, 429, headers={"Retry-After": "1"})


def unavailable(request: ChatRequest) -> Reply:
    """Return status 503, as a server does while it loads its model."""
    return build_error_reply(503, "The model is loading (simulated)", "unavailable_error")


def build_key_error() -> Reply:
    """Return status 401 for an invalid key."""
    return build_error_reply(401, "Invalid API key (simulated)", "authentication_error")


def key_refused(request: ChatRequest) -> Reply:
    """Refuse the key, although it is valid."""
    return build_key_error()


def out_of_money(request: ChatRequest) -> Reply:
    """Return status 402 for insufficient credits."""
    return build_error_reply(402, "Insufficient credits (simulated)", "payment_required")


def no_tool_route(request: ChatRequest) -> Reply | None:
    """Refuse a request with tools."""
    if not request.functions:
        return None
    return build_error_reply(404, "No endpoints found that support tool use (simulated)", "not_found")


def safety_refusal(request: ChatRequest) -> Reply | None:
    """Refuse a request without tools, which some control scenarios send."""
    if request.functions:
        return None
    text = "Content violates usage guidelines (simulated)"
    return build_error_reply(
        403, text, "content_policy", metadata={"reasons": ["safety"], "provider_name": "simulated"}
    )


def context_overflow(request: ChatRequest) -> Reply:
    """Return the error for a prompt that is longer than the context."""
    text = "request (921 tokens) exceeds the available context size (512 tokens), try increasing it"
    return build_error_reply(400, text, "exceed_context_size_error", n_prompt_tokens=921, n_ctx=512)


def history_refused(request: ChatRequest) -> Reply | None:
    """Refuse a request that has an answer after its question: every request of a task but the first."""
    if not request.turns:
        return None
    return build_error_reply(500, "Failed to parse tool call arguments as JSON (simulated)", "server_error")


def choices_null(request: ChatRequest) -> Reply:
    """Return a router's answer that has neither choices nor an error."""
    return Reply(json.dumps({"id": "sim-null", "object": "chat.completion", "choices": None}).encode())


def never_answers(request: ChatRequest) -> Reply:
    """Return a reply that leaves the request unanswered."""
    return Reply(hangs=True)


def drops_connection(request: ChatRequest) -> Reply:
    """Return a reply that closes the connection without a response."""
    return Reply(drops=True)


FAILURES: dict[str, BuildFailure] = {
    failure.__name__: failure
    for failure in (
        model_format_error,
        error_inside_200,
        html_200,
        half_a_body,
        nested_body,
        rate_limited,
        unavailable,
        key_refused,
        out_of_money,
        no_tool_route,
        safety_refusal,
        context_overflow,
        history_refused,
        choices_null,
        never_answers,
        drops_connection,
    )
}
