"""Tests of which parameters an error of a vendor names as refused."""

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


def list_refused(body: Any, status: int = 400, sent: Any = SENT) -> tuple[str, ...]:
    error = classify_response(
        status=status, headers={}, body=body if isinstance(body, bytes) else json.dumps(body).encode()
    )
    assert error is not None
    return list_refused_parameters(error, sent)


def build_openai_error(message: str, param: str | None = None, code: str | None = None) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def build_pydantic_error(*loc: str | int, kind: str = "extra_forbidden", invalid_input: Any = None) -> Any:
    return {"type": kind, "loc": list(loc), "msg": "Extra inputs are not permitted", "input": invalid_input}


EXTRA = "{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': 42}"
STREAM = EXTRA.replace("seed", "stream_options")
GEMINI = 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'
MISSING = (
    "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required', 'input': {'seed': 1, 'top_p': 1}}]"
)

REFUSALS = {
    "openai o-series": (
        build_openai_error(
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", "parallel_tool_calls"
        ),
        ["parallel_tool_calls"],
    ),
    "openai value": (
        build_openai_error("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
        ["temperature"],
    ),
    "openai nested": (
        build_openai_error("Unknown parameter: 'stream_options.x'.", "stream_options.x"),
        ["stream_options"],
    ),
    "openai older": (build_openai_error("Unrecognized request argument supplied: seed"), ["seed"]),
    "openai arguments": (build_openai_error("Unrecognized request arguments supplied: seed, top_k"), ["seed", "top_k"]),
    "azure": (
        build_openai_error(
            "Unrecognized request argument supplied: stream_options. Please contact us through Azure support.", ""
        ),
        ["stream_options"],
    ),
    "azure mistral": (build_openai_error("Validation error at #/stream_options: Extra inputs"), ["stream_options"]),
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
    "vllm sentence": (build_openai_error("top_k must be -1 (disable), or at least 1, got 0."), ["top_k"]),
    "llama.cpp": (
        {"error": {"code": 400, "message": "logprobs is not supported with tools + stream", "type": "invalid_request"}},
        ["logprobs"],
    ),
    "mistral": (
        {
            "object": "error",
            "message": {"detail": [build_pydantic_error("body", "seed", invalid_input=7)]},
            "type": "x",
            "param": None,
        },
        ["seed"],
    ),
    "mistral later": ({"object": "Error", "detail": [build_pydantic_error("body", "tool_choice")]}, ["tool_choice"]),
    "fastapi": (
        {"detail": [build_pydantic_error("body", "tool_choice"), build_pydantic_error("body", "seed")]},
        ["tool_choice", "seed"],
    ),
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
        build_openai_error("UnsupportedParamsError: ollama does not support parameters: ['parallel_tool_calls']"),
        ["parallel_tool_calls"],
    ),
    "bedrock": (
        build_openai_error("parallel_tool_calls=False is not supported on this backend."),
        ["parallel_tool_calls"],
    ),
    "gaudi": (
        build_openai_error(
            "Gaudi doesn't support logprobs. Please remove 'logprobs'/'top_logprobs' from your request."
        ),
        ["logprobs", "top_logprobs"],
    ),
    "openrouter": (
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "provider_name": "OpenAI",
                    "raw": json.dumps(build_openai_error("Unsupported parameter: 'seed'", "seed")),
                },
            }
        },
        ["seed"],
    ),
    "no support": (build_openai_error("This model does not support temperature."), ["temperature"]),
    "no support for the": (build_openai_error("The model does not support the seed."), ["seed"]),
    "place in a sentence": (build_openai_error("body.seed: Extra inputs are not permitted"), ["seed"]),
    "plain text": (b"unknown field `seed`, expected one of `model`, `messages`", ["seed"]),
}
OTHER_ERRORS = {
    "messages": build_openai_error(
        "Invalid type for 'messages[1].content': expected seed or user.", "messages[1].content"
    ),
    "inside a message": build_openai_error("'messages.0' : property 'metadata' is unsupported"),
    "inside a tool": [
        {"error": {"code": 400, "message": "Unknown name \"seed\" at 'tools[0].parameters': Cannot find."}}
    ],
    "tools": build_openai_error("Invalid value for 'tools'.", "tools"),
    "the model": build_openai_error("The model `temperature` does not exist", "model"),
    "limit": build_openai_error(
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"
    ),
    "missing messages": {"object": "error", "message": MISSING, "type": "BadRequestError", "param": None, "code": 400},
    "missing in a list": {
        "detail": [build_pydantic_error("body", "messages", kind="missing", invalid_input={"seed": 1})]
    },
    "ordinary words": build_openai_error("The user asked to stop; reasoning about the seed of a plant found no store."),
    "roles": build_openai_error("conversation roles must alternate 'user'/'assistant'/'user'"),
    "a role": build_openai_error("Invalid role: 'user' after 'tool'"),
    "nothing": build_openai_error("Bad request."),
    "suggestion": {"error": {"message": "property 'sed' is unsupported, did you mean 'seed'?"}},
    "no error": {"error": {"message": "", "code": 400}},
}


@pytest.mark.parametrize("error_form", REFUSALS)
@pytest.mark.parametrize("status", [400, 422])
def test_list_refused_parameters_reads_error_of_every_vendor(error_form: str, status: int) -> None:
    body, names = REFUSALS[error_form]
    assert sorted(list_refused(body, status)) == sorted(names)


@pytest.mark.parametrize("error_form", OTHER_ERRORS)
def test_list_refused_parameters_other_error_returns_none(error_form: str) -> None:
    assert list_refused(OTHER_ERRORS[error_form]) == ()


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_list_refused_parameters_other_status_returns_none(status: int) -> None:
    assert list_refused(build_openai_error("Unsupported parameter: 'seed'", "seed"), status) == ()


def test_list_refused_parameters_reads_error_in_status_200() -> None:
    assert list_refused({"error": {"message": "Unsupported parameter: 'seed'", "code": 400}}, 200) == ("seed",)


def test_list_refused_parameters_ignores_parameter_that_was_not_sent() -> None:
    assert list_refused(build_openai_error("Unsupported parameter: 'seed'", "seed"), sent=("model", "messages")) == ()


@given(name=st.sampled_from(SENT))
def test_list_refused_parameters_returns_only_optional_parameters(name: str) -> None:
    for message, param in ((f"Unsupported parameter: '{name}'", name), (f"Unknown parameter: '{name}'", None)):
        assert set(list_refused(build_openai_error(message, param))) <= set(OPTIONAL_PARAMETERS)
        assert not {"model", "messages", "tools", "stream", "max_tokens", "response_format"} & set(OPTIONAL_PARAMETERS)


def test_describe_difference_explains_parameters_that_affect_answers() -> None:
    for name in ("seed", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "stream_options"):
        assert describe_difference(name)
    assert describe_difference("user") == describe_difference("nothing") == ""


def test_drop_refused_parameters_is_set_only_by_infrastructure_preset() -> None:
    preset_names = [
        name for name in list_preset_names() if resolve_policy([("x", get_preset(name))]).policy.drop_refused_parameters
    ]
    assert preset_names == [INFRASTRUCTURE]
    strategies = ("raw", "wire_standard", "baseline", "production")
    strategy_values = [resolve_policy(build_layers(name)).policy.drop_refused_parameters for name in strategies]
    assert strategy_values == [False, False, True, True]


@pytest.mark.parametrize(
    ("code", "status", "names"),
    [
        ("request_rejected", 400, ("seed",)), ("unprocessable", 422, ("seed",)), ("request_rejected", None, ("seed",)),
        ("request_rejected", 299, ("seed",)), ("request_rejected", 300, ()), ("request_rejected", 500, ()),
        ("rate_limited", 400, ()), ("rate_limited", None, ()),
    ],
)  # fmt: skip
def test_list_refused_parameters_depends_on_error_code_and_status(
    code: str, status: int | None, names: tuple[str, ...]
) -> None:
    assert list_refused_parameters(ExchangeError(code, "Unsupported parameter: 'seed'", status), SENT) == names
