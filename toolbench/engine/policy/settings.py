"""The policy: all settings of a trial, resolved from layers of patches.

The fields of Policy are the only table of policy keys: validation, merging, forms and documentation read them.

A layer is (name, patch), the lowest first. A key that a patch does not have is untouched. `null` resets a key to the
engine's default. Objects merge leaf by leaf. Lists are ordered unions, and [] clears them. For other values, and for
the list `paths`, whose order matters, the last layer wins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from toolbench.engine import formats
from toolbench.engine.constraints.schema_support import CONSTRAINTS, SizeLimits
from toolbench.engine.errors import PolicyError, PolicyProblem
from toolbench.engine.policy.keys import (
    ALIAS_MAP,
    FLAG,
    NAME_LIST,
    OBJECT,
    PATTERN,
    TEXT,
    TOOL_CHOICE,
    TRANSFORM_LIST,
    KeySpec,
    build_choice_kind,
    build_integer_kind,
    build_metadata,
    build_methods_kind,
    build_set_kind,
)
from toolbench.engine.policy.layered_key import LayeredValue, OverriddenSetting
from toolbench.engine.policy.optional_parameters import OPTIONAL_PARAMETERS
from toolbench.engine.strict_json import copy_json
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.types import JsonObject

Layer: TypeAlias = tuple[str, Mapping[str, Any]]  # (name, patch)

# Further accepted words for `tool_use_mode`, with the mode that they stand for.
TOOL_USE_MODE_ALIASES = {
    "required": "enforced",
    "must": "enforced",
    "preferred": "relaxed",
    "optional": "relaxed",
    "off": "disabled",
    "none": "disabled",
    "0": "disabled",
    "false": "disabled",
}
METHODS = ("native", "text_json", "template", "constrained")
FINAL_ANSWER_PROMPT = "Please provide your final answer."


@dataclass(frozen=True, slots=True)
class Policy:
    """All settings of the loop. Do not modify its objects; they are copies of those in the patches."""

    tool_use_mode: str = field(
        default="relaxed",
        metadata=build_metadata(
            build_choice_kind("enforced", "relaxed", "disabled", aliases=TOOL_USE_MODE_ALIASES),
            "Enforced needs at least one tool call in the run; relaxed only offers tools; disabled never sends them.",
        ),
    )
    tool_failure_policy: str = field(
        default="fatal",
        metadata=build_metadata(
            build_choice_kind("fatal", "tolerated"),
            "In enforced mode, at the final answer: fatal needs the latest result of every tool name to be good; "
            "tolerated needs one good result in the run.",
        ),
    )
    method: str = field(
        default="native", metadata=build_metadata(build_choice_kind(*METHODS), "How calls are asked for.")
    )
    constraint: str = field(
        default="response_format",
        metadata=build_metadata(
            build_choice_kind(*CONSTRAINTS),
            "What holds the model to the format when the method is constrained: a JSON Schema in response_format "
            "(plain_schema: with what Gemini holds of it; strict: OpenAI's mode; strict_tools: the same for native "
            "tools; tgi_grammar: as TGI has it), structured_outputs of vLLM, output_config of Anthropic "
            "(strict_tool_use: the same for native tools), or a grammar (grammar: llguidance in llama.cpp; gbnf: "
            "llama.cpp's own; the same as fireworks_grammar at Fireworks, structured_grammar at vLLM, ebnf at SGLang).",
        ),
    )
    text_format: str = field(
        default=formats.AUTO,
        metadata=build_metadata(
            build_choice_kind(*formats.list_format_names()),
            "The text format of calls: what the method template writes and reads (auto: hermes) and what "
            "tool_calls_from_text reads (auto: all).",
        ),
    )
    guess_untyped: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG,
            "In such calls, read tagged values that no schema gives a type as JSON where they are JSON; off, they stay "
            "text.",
        ),
    )
    prompt_endpoint: str = field(
        default="completions",
        metadata=build_metadata(
            build_choice_kind("completions", "llama"),
            "Where the method template sends its prompt: OpenAI's /v1/completions, or llama.cpp's own /completion.",
        ),
    )
    constraint_max_string: int = field(
        default=SizeLimits().max_string_length,
        metadata=build_metadata(
            build_integer_kind(1),
            "Characters of a string that has no bound of its own, when the method is constrained.",
        ),
    )
    constraint_max_items: int = field(
        default=SizeLimits().max_items,
        metadata=build_metadata(build_integer_kind(1), "The same for the items of a list."),
    )
    examples: str = field(default="none", metadata=build_metadata(TEXT, "The few-shot set in the history, or none."))
    paths: tuple[str, ...] = field(
        default=("native", "template", "constrained", "text_json"),
        metadata=build_metadata(
            build_methods_kind(*METHODS),
            "The order in which methods are considered where an endpoint lacks native tools.",
        ),
    )
    max_turns: int = field(
        default=12,
        metadata=build_metadata(
            build_integer_kind(1),
            "Turns after which the run ends as MAX_TURNS_EXCEEDED; counted anew for each of the user's messages.",
        ),
    )
    tool_choice: RequestChoice = field(
        default="auto",
        metadata=build_metadata(TOOL_CHOICE, "Sent together with tools. Enforced does not change it."),
    )
    tool_allowlist: tuple[str, ...] = field(
        default=(), metadata=build_metadata(NAME_LIST, "Only these tools are sent and may run; empty means all.")
    )
    tool_denylist: tuple[str, ...] = field(
        default=(), metadata=build_metadata(NAME_LIST, "These tools are neither sent nor may run.")
    )
    tool_name_aliases: dict[str, str] = field(
        default_factory=dict, metadata=build_metadata(ALIAS_MAP, "Names models use instead of a tool's own.")
    )
    validate_arguments: bool = field(
        default=True, metadata=build_metadata(FLAG, "Refuse calls whose arguments break the tool's JSON Schema.")
    )
    fix_empty_final: bool = field(
        default=True, metadata=build_metadata(FLAG, "Ask once more when the answer after tool calls is blank.")
    )
    fix_empty_final_user_text: str = field(
        default=FINAL_ANSWER_PROMPT, metadata=build_metadata(TEXT, "What the user says in that request.")
    )
    fix_empty_final_disable_tools: bool = field(
        default=True,
        metadata=build_metadata(
            FLAG,
            "Leave tools out of that request. Some providers refuse tool messages without tools: then turn it off.",
        ),
    )
    fallback_retry_count: int = field(
        default=0,
        metadata=build_metadata(
            build_integer_kind(0),
            "Relaxed mode: retries of a turn without tools when the endpoint says that it cannot use them.",
        ),
    )
    cut_stream_retries: int = field(
        default=0,
        metadata=build_metadata(
            build_integer_kind(0), "How often a streamed answer that breaks off in the middle may be asked for again."
        ),
    )
    tool_id_pattern: str = field(
        default="",
        metadata=build_metadata(
            PATTERN, "What the endpoint takes as the id of a call, as a regular expression; others are replaced."
        ),
    )
    usual_findings: tuple[str, ...] = field(
        default=(),
        metadata=build_metadata(
            NAME_LIST, "Findings of calls that are the endpoint's normal behaviour and are not reported."
        ),
    )
    reasoning_history: str = field(
        default="all",
        metadata=build_metadata(
            build_choice_kind("all", "last_turn", "details", "tags", "none"),
            "What of earlier reasoning goes back. All: as it came, as DeepSeek (reasoning_content), Kimi and MiniMax "
            "demand of turns that called, and what Anthropic wants of its signed blocks. Last_turn: only since the "
            "user last spoke, as gpt-oss was trained. Details: OpenRouter's reasoning_details and Anthropic's blocks, "
            "untouched, and no reasoning as plain text beside them. Tags: inside the text, between think tags, as "
            "Cerebras wants it of GLM. None: nothing, for endpoints that refuse fields they do not know.",
        ),
    )
    max_tool_args_bytes: int = field(
        default=200_000,
        metadata=build_metadata(build_integer_kind(1), "Larger arguments are refused as ARGUMENTS_TOO_LARGE."),
    )
    max_tool_output_bytes: int = field(
        default=200_000,
        metadata=build_metadata(build_integer_kind(1), "A larger result is replaced by TOOL_OUTPUT_TOO_LARGE."),
    )
    max_tool_calls_per_turn: int | None = field(
        default=None,
        metadata=build_metadata(
            build_integer_kind(1),
            "Calls kept per answer; the rest is ignored and counted. 1 when parallel_tool_calls is false.",
        ),
    )
    max_tool_definitions_count: int = field(
        default=128,
        metadata=build_metadata(build_integer_kind(1), "More tools than this are not sent: the run does not start."),
    )
    max_tool_definitions_bytes: int = field(
        default=200_000,
        metadata=build_metadata(build_integer_kind(1), "The same for the bytes of the tools array."),
    )
    request_overrides: JsonObject = field(
        default_factory=dict,
        metadata=build_metadata(
            OBJECT, "Merged into the request body, except model, messages, tools, tool_choice and response_format."
        ),
    )
    llm_options_defaults: JsonObject = field(
        default_factory=dict,
        metadata=build_metadata(OBJECT, "Sampling defaults, under everything else in the body."),
    )
    message_transforms: tuple[str, ...] = field(
        default=(), metadata=build_metadata(TRANSFORM_LIST, "Applied to the outgoing messages, in order.")
    )
    tool_transforms: tuple[str, ...] = field(
        default=(), metadata=build_metadata(TRANSFORM_LIST, "Applied to the outgoing tools, in order.")
    )
    request_transforms: tuple[str, ...] = field(
        default=(),
        metadata=build_metadata(TRANSFORM_LIST, "Applied to the whole outgoing body, in order, after all others."),
    )
    response_transforms: tuple[str, ...] = field(
        default=(), metadata=build_metadata(TRANSFORM_LIST, "Applied to the answer's message, in order.")
    )
    tool_call_transforms: tuple[str, ...] = field(
        default=(), metadata=build_metadata(TRANSFORM_LIST, "Applied to the calls found, in order.")
    )
    tool_result_transforms: tuple[str, ...] = field(
        default=(), metadata=build_metadata(TRANSFORM_LIST, "Applied to each result's envelope, in order.")
    )
    argument_repairs: tuple[str, ...] = field(
        default=(),
        metadata=build_metadata(
            TRANSFORM_LIST,
            "Repairs of arguments that are no JSON object, tried in order; what breaks off is never executed.",
        ),
    )
    repair_request: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG,
            "Ask once more in a run, quoting the error, when an answer means a call that cannot be run. A second "
            "sample: the first-attempt rate stands beside it.",
        ),
    )
    serial_calls: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG, "Keep one call per answer: for endpoints and models that cannot make several at once."
        ),
    )
    tool_use_prompt: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG, "Native method: tell the model to fill in the tool's parameters and to write no JSON into its text."
        ),
    )
    drop_refused_parameters: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG,
            "Where an endpoint answers 400 or 422 and names an optional parameter, ask once more without it, and leave "
            "it out for the rest of the run.",
        ),
    )
    left_out_parameters: tuple[str, ...] = field(
        default=(),
        metadata=build_metadata(
            build_set_kind(*OPTIONAL_PARAMETERS),
            "Optional parameters that are never sent: for endpoints that refuse them.",
        ),
    )
    wire_standard_only: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG,
            "Read only the calls that the published wire standards allow: tool_calls as a list of functions with id, "
            "name and the text of a JSON object. Anything else is a parse error and does not run.",
        ),
    )
    strict: bool = field(
        default=False,
        metadata=build_metadata(FLAG, "Refuse unknown transform names instead of ignoring them."),
    )


_ENGINE_DEFAULT = Policy()
KEYS: dict[str, KeySpec] = {
    f.name: KeySpec(f.name, f.metadata["kind"], getattr(_ENGINE_DEFAULT, f.name), f.metadata["doc"])
    for f in fields(Policy)
}


@dataclass(frozen=True, slots=True)
class KeyDescription:
    """The description of a policy key for documentation and forms."""

    name: str
    kind: str
    accepts: str
    merge: str
    default: Any
    doc: str
    choices: tuple[str, ...]


def describe_keys() -> tuple[KeyDescription, ...]:
    """Return the description of each key, in the order of the fields of Policy."""
    return tuple(
        KeyDescription(
            row.name, row.kind.name, row.kind.accepts, row.kind.merge, row.default, row.doc, row.kind.choices
        )
        for row in KEYS.values()
    )


def build_policy_json(policy: Policy) -> JsonObject:
    """Return the policy as a JSON object, with keys in the order of the fields of Policy."""
    return {name: _to_plain_value(getattr(policy, name)) for name in KEYS}


def _to_plain_value(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else copy_json(value)


@dataclass(frozen=True, slots=True)
class ResolvedPolicy:
    """A policy with the origin of each value.

    Attributes:
        origins: the layer of each leaf (`request_overrides.parallel_tool_calls`), each list element
            (`response_transforms[0]`) and each other key, empty objects and lists included; `engine` is the engine's
            default.
        overridden: settings that a later layer replaced, in the order of the replacing layers.
    """

    policy: Policy
    origins: dict[str, str]
    overridden: tuple[OverriddenSetting, ...]


def resolve_policy(layers: Iterable[Layer]) -> ResolvedPolicy:
    """Return the policy that results from the layers, lowest first.

    Raises:
        PolicyError: a key is unknown or a value is invalid; it lists all problems of all layers.
    """
    values = {name: LayeredValue(row) for name, row in KEYS.items()}
    overridden_settings: list[OverriddenSetting] = []
    problems: list[PolicyProblem] = []
    for layer, patch in layers:
        for name, unparsed_value in patch.items():
            if name not in values:
                problems.append(PolicyProblem(layer, str(name), f"unknown key; known are {', '.join(values)}"))
                continue
            try:
                overridden_settings.extend(values[name].merge_layer(layer, unparsed_value))
            except ValueError as error:
                problems.append(PolicyProblem(layer, name, str(error)))
    if problems:
        raise PolicyError(tuple(problems))
    origins = {leaf: layer for value in values.values() for leaf, layer in value.iterate_origins()}
    return ResolvedPolicy(
        Policy(**{name: value.value for name, value in values.items()}), origins, tuple(overridden_settings)
    )
