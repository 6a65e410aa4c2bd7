"""Which parameters a refusal names, in the forms in which vendors write it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.engine.events import ExchangeError
from toolbench.engine.policy.optional_parameters import (
    OPTIONAL_PARAMETERS,
    describe_difference,
    list_refused_parameters,
)
from toolbench.engine.policy.presets import INFRASTRUCTURE, build_layers, get_preset, list_preset_names
from toolbench.engine.policy.settings import resolve_policy
from toolbench.providers.http.error_codes import classify_response

SENT = ("model", "messages", "tools", "stream", "max_tokens", "response_format", *OPTIONAL_PARAMETERS)


def refused(body: Any, status: int = 400, sent: Any = SENT) -> tuple[str, ...]:
    error = classify_response(
        status=status, headers={}, body=body if isinstance(body, bytes) else json.dumps(body).encode()
    )
    assert error is not None
    return list_refused_parameters(error, sent)


def openai(message: str, param: str | None = None, code: str | None = None) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def pydantic(*loc: str | int, kind: str = "extra_forbidden", given: Any = None) -> Any:
    return {"type": kind, "loc": list(loc), "msg": "Extra inputs are not permitted", "input": given}


EXTRA = "{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': 42}"
STREAM = EXTRA.replace("seed", "stream_options")
GEMINI = 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'
MISSING = (
    "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required', 'input': {'seed': 1, 'top_p': 1}}]"
)

NAMED = {
    "openai o-series": (
        openai("Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", "parallel_tool_calls"),
        ["parallel_tool_calls"],
    ),
    "openai value": (
        openai("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
        ["temperature"],
    ),
    "openai nested": (openai("Unknown parameter: 'stream_options.x'.", "stream_options.x"), ["stream_options"]),
    "openai older": (openai("Unrecognized request argument supplied: seed"), ["seed"]),
    "openai arguments": (openai("Unrecognized request arguments supplied: seed, top_k"), ["seed", "top_k"]),
    "azure": (
        openai("Unrecognized request argument supplied: stream_options. Please contact us through Azure support.", ""),
        ["stream_options"],
    ),
    "azure mistral": (openai("Validation error at #/stream_options: Extra inputs"), ["stream_options"]),
    "anthropic": (
        {"type": "error", "error": {"type": "invalid_request", "message": "seed: Extra inputs are not permitted"}},
        ["seed"],
    ),
    "anthropic both": (
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            },
        },
        ["temperature", "top_p"],
    ),
    "vllm": (
        {"object": "error", "message": f"[{EXTRA}, {STREAM}]", "type": "BadRequestError", "param": None, "code": 400},
        ["seed", "stream_options"],
    ),
    "vllm sentence": (openai("top_k must be -1 (disable), or at least 1, got 0."), ["top_k"]),
    "llama.cpp": (
        {"error": {"code": 400, "message": "logprobs is not supported with tools + stream", "type": "invalid_request"}},
        ["logprobs"],
    ),
    "mistral": (
        {"object": "error", "message": {"detail": [pydantic("body", "seed", given=7)]}, "type": "x", "param": None},
        ["seed"],
    ),
    "mistral later": ({"object": "Error", "detail": [pydantic("body", "tool_choice")]}, ["tool_choice"]),
    "fastapi": ({"detail": [pydantic("body", "tool_choice"), pydantic("body", "seed")]}, ["tool_choice", "seed"]),
    "groq": ({"error": {"message": "property 'store' is unsupported, did you mean 'stop'?"}}, ["store"]),
    "gemini": (
        [
            {
                "error": {
                    "code": 400,
                    "message": f"{GEMINI.format('frequency_penalty')}\n{GEMINI.format('seed')}",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        ["seed", "frequency_penalty"],
    ),
    "xai": ({"error": "Model grok-4 does not support parameter presencePenalty."}, ["presence_penalty"]),
    "litellm": (
        openai("UnsupportedParamsError: ollama does not support parameters: ['parallel_tool_calls']"),
        ["parallel_tool_calls"],
    ),
    "bedrock": (openai("parallel_tool_calls=False is not supported on this backend."), ["parallel_tool_calls"]),
    "gaudi": (
        openai("Gaudi doesn't support logprobs. Please remove 'logprobs'/'top_logprobs' from your request."),
        ["logprobs", "top_logprobs"],
    ),
    "openrouter": (
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "provider_name": "OpenAI",
                    "raw": json.dumps(openai("Unsupported parameter: 'seed'", "seed")),
                },
            }
        },
        ["seed"],
    ),
    "no support": (openai("This model does not support temperature."), ["temperature"]),
    "no support for the": (openai("The model does not support the seed."), ["seed"]),
    "place in a sentence": (openai("body.seed: Extra inputs are not permitted"), ["seed"]),
    "plain text": (b"unknown field `seed`, expected one of `model`, `messages`", ["seed"]),
}
UNNAMED = {
    "messages": openai("Invalid type for 'messages[1].content': expected seed or user.", "messages[1].content"),
    "inside a message": openai("'messages.0' : property 'metadata' is unsupported"),
    "inside a tool": [
        {"error": {"code": 400, "message": "Unknown name \"seed\" at 'tools[0].parameters': Cannot find."}}
    ],
    "tools": openai("Invalid value for 'tools'.", "tools"),
    "the model": openai("The model `temperature` does not exist", "model"),
    "limit": openai("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
    "missing messages": {"object": "error", "message": MISSING, "type": "BadRequestError", "param": None, "code": 400},
    "missing in a list": {"detail": [pydantic("body", "messages", kind="missing", given={"seed": 1})]},
    "ordinary words": openai("The user asked to stop; reasoning about the seed of a plant found no store."),
    "roles": openai("conversation roles must alternate 'user'/'assistant'/'user'"),
    "a role": openai("Invalid role: 'user' after 'tool'"),
    "nothing": openai("Bad request."),
    "suggestion": {"error": {"message": "property 'sed' is unsupported, did you mean 'seed'?"}},
    "no error": {"error": {"message": "", "code": 400}},
}


@pytest.mark.parametrize("form", NAMED)
@pytest.mark.parametrize("status", [400, 422])
def test_refusal_names_the_parameters_it_refuses(form: str, status: int) -> None:
    body, names = NAMED[form]
    assert sorted(refused(body, status)) == sorted(names)


@pytest.mark.parametrize("form", UNNAMED)
def test_error_that_names_nothing_optional_refuses_nothing(form: str) -> None:
    assert refused(UNNAMED[form]) == ()


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_other_statuses_refuse_no_parameter(status: int) -> None:
    assert refused(openai("Unsupported parameter: 'seed'", "seed"), status) == ()


def test_error_in_an_answer_of_status_200_is_a_refusal() -> None:
    assert refused({"error": {"message": "Unsupported parameter: 'seed'", "code": 400}}, 200) == ("seed",)


def test_parameter_that_was_not_sent_is_not_refused() -> None:
    assert refused(openai("Unsupported parameter: 'seed'", "seed"), sent=("model", "messages")) == ()


@given(name=st.sampled_from(SENT))
def test_nothing_that_a_method_needs_is_ever_left_out(name: str) -> None:
    for message, param in ((f"Unsupported parameter: '{name}'", name), (f"Unknown parameter: '{name}'", None)):
        assert set(refused(openai(message, param))) <= set(OPTIONAL_PARAMETERS)
        assert not {"model", "messages", "tools", "stream", "max_tokens", "response_format"} & set(OPTIONAL_PARAMETERS)


def test_what_is_no_longer_measured_is_said_of_what_steers_the_model() -> None:
    for name in ("seed", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "stream_options"):
        assert describe_difference(name)
    assert describe_difference("user") == describe_difference("nothing") == ""


def test_infrastructure_alone_turns_dropping_on() -> None:
    on = [
        name for name in list_preset_names() if resolve_policy([("x", get_preset(name))]).policy.drop_refused_parameters
    ]
    assert on == [INFRASTRUCTURE]
    strategies = ("raw", "wire_standard", "baseline", "production")
    found = [resolve_policy(build_layers(name)).policy.drop_refused_parameters for name in strategies]
    assert found == [False, False, True, True]


@pytest.mark.parametrize(
    ("code", "status", "names"),
    [
        ("request_rejected", 400, ("seed",)), ("unprocessable", 422, ("seed",)), ("request_rejected", None, ("seed",)),
        ("request_rejected", 299, ("seed",)), ("request_rejected", 300, ()), ("request_rejected", 500, ()),
        ("rate_limited", 400, ()), ("rate_limited", None, ()),
    ],
)  # fmt: skip
def test_refusal_is_told_by_code_and_status(code: str, status: int | None, names: tuple[str, ...]) -> None:
    assert list_refused_parameters(ExchangeError(code, "Unsupported parameter: 'seed'", status), SENT) == names
