"""The policy: all settings of a trial, resolved from layers of patches.

The fields of Policy are the only table of policy keys: validation, merging, forms and documentation read them.
Each layer is a pair (name, patch); the lowest is the first. A key that a patch does not have keeps its value. `null`
resets a key to the engine's default. Objects merge leaf by leaf. Lists are joined in order, without repetitions, and []
resets a list. For other values, and for the list `paths`, whose order matters, the last layer wins.
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
    """All settings of the loop. Do not modify the objects in it, which are copies of those in the patches."""

    tool_use_mode: str = field(
        default="relaxed",
        metadata=build_metadata(
            build_choice_kind("enforced", "relaxed", "disabled", aliases=TOOL_USE_MODE_ALIASES),
            "enforced: a run without a tool call fails; relaxed: such a run may succeed; disabled: no tools are sent.",
        ),
    )
    tool_failure_policy: str = field(
        default="fatal",
        metadata=build_metadata(
            build_choice_kind("fatal", "tolerated"),
            "When failed calls make a run in enforced mode fail. fatal: if the latest call of any tool failed; "
            "tolerated: only if all calls of the run failed.",
        ),
    )
    method: str = field(
        default="native", metadata=build_metadata(build_choice_kind(*METHODS), "How calls are requested.")
    )
    constraint: str = field(
        default="response_format",
        metadata=build_metadata(
            build_choice_kind(*CONSTRAINTS),
            "How the method constrained sends its constraint. As a JSON Schema: response_format (strict: in OpenAI's "
            "strict mode; plain_schema: with the keywords that Gemini enforces; tgi_grammar: as TGI expects it), "
            "structured_outputs (vLLM) or output_config (Anthropic). As native strict tools: strict_tools (OpenAI) or "
            "strict_tool_use (Anthropic). As a grammar: grammar (llguidance in llama.cpp), or llama.cpp's own as gbnf, "
            "fireworks_grammar (Fireworks), structured_grammar (vLLM) or ebnf (SGLang).",
        ),
    )
    text_format: str = field(
        default=formats.AUTO,
        metadata=build_metadata(
            build_choice_kind(*formats.list_format_names()),
            "The text format of calls. The method template writes and reads it (auto: hermes). The transforms "
            "tool_calls_from_text and tool_calls_from_reasoning read it (auto: every format).",
        ),
    )
    guess_untyped: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG,
            "In calls with a tag for each value, read a value as JSON if it is valid and no schema states its type. "
            "If this is off, a value without a type stays text.",
        ),
    )
    prompt_endpoint: str = field(
        default="completions",
        metadata=build_metadata(
            build_choice_kind("completions", "llama"),
            "Where the method template sends its prompt: to OpenAI's /v1/completions or llama.cpp's own /completion.",
        ),
    )
    constraint_max_string: int = field(
        default=SizeLimits().max_string_length,
        metadata=build_metadata(
            build_integer_kind(1),
            "Method constrained: the maximum number of characters of a string without maxLength in its schema.",
        ),
    )
    constraint_max_items: int = field(
        default=SizeLimits().max_items,
        metadata=build_metadata(build_integer_kind(1), "Method constrained: maximum items of a list without maxItems."),
    )
    examples: str = field(
        default="none", metadata=build_metadata(TEXT, "Name of the set of few-shot examples, or none.")
    )
    paths: tuple[str, ...] = field(
        default=("native", "template", "constrained", "text_json"),
        metadata=build_metadata(
            build_methods_kind(*METHODS),
            "The methods from which auto chooses, in this order: the first one that the endpoint supports is used.",
        ),
    )
    max_turns: int = field(
        default=12,
        metadata=build_metadata(
            build_integer_kind(1),
            "Maximum number of turns for each user message; a run that needs more ends with MAX_TURNS_EXCEEDED.",
        ),
    )
    tool_choice: RequestChoice = field(
        default="auto",
        metadata=build_metadata(
            TOOL_CHOICE,
            "The tool choice. In enforced mode, a constraint treats auto as required until a call was made.",
        ),
    )
    tool_allowlist: tuple[str, ...] = field(
        default=(), metadata=build_metadata(NAME_LIST, "Only these tools are sent and may run; empty means all.")
    )
    tool_denylist: tuple[str, ...] = field(
        default=(), metadata=build_metadata(NAME_LIST, "These tools are neither sent nor may run.")
    )
    tool_name_aliases: dict[str, str] = field(
        default_factory=dict,
        metadata=build_metadata(ALIAS_MAP, "Other names that models use for tools, each with the tool's own."),
    )
    validate_arguments: bool = field(
        default=True, metadata=build_metadata(FLAG, "Refuse calls whose arguments violate the tool's schema.")
    )
    fix_empty_final: bool = field(
        default=True, metadata=build_metadata(FLAG, "If the answer after tool calls is blank, ask once more.")
    )
    fix_empty_final_user_text: str = field(
        default=FINAL_ANSWER_PROMPT, metadata=build_metadata(TEXT, "The user message that fix_empty_final sends.")
    )
    fix_empty_final_disable_tools: bool = field(
        default=True,
        metadata=build_metadata(
            FLAG,
            "Send no tools with fix_empty_final. Turn this off if the provider refuses tool messages without tools.",
        ),
    )
    fallback_retry_count: int = field(
        default=0,
        metadata=build_metadata(
            build_integer_kind(0),
            "Relaxed mode: whether to repeat a turn once without tools if the endpoint says that it cannot use tools. "
            "0: no; 1 or more: yes.",
        ),
    )
    cut_stream_retries: int = field(
        default=0,
        metadata=build_metadata(
            build_integer_kind(0), "How often a request may be sent again if its streamed answer breaks off."
        ),
    )
    tool_id_pattern: str = field(
        default="",
        metadata=build_metadata(
            PATTERN, "Regular expression that call ids must match as a whole; other ids are replaced in requests."
        ),
    )
    usual_findings: tuple[str, ...] = field(
        default=(),
        metadata=build_metadata(
            NAME_LIST, "Codes of findings that are normal for this endpoint and are therefore not reported."
        ),
    )
    reasoning_history: str = field(
        default="all",
        metadata=build_metadata(
            build_choice_kind("all", "last_turn", "details", "tags", "none"),
            "How earlier reasoning is sent back. all: as received, which DeepSeek, Kimi and MiniMax require for turns "
            "with calls, and Anthropic for its signed blocks; last_turn: only the reasoning since the last user "
            "message, as gpt-oss was trained; details: only OpenRouter's reasoning_details and Anthropic's blocks, "
            "unchanged, without reasoning as plain text; tags: in the text, between think tags, as Cerebras requires "
            "for GLM; none: not at all, for endpoints that refuse unknown fields.",
        ),
    )
    max_tool_args_bytes: int = field(
        default=200_000,
        metadata=build_metadata(build_integer_kind(1), "Maximum size of a call's arguments; larger ones are refused."),
    )
    max_tool_output_bytes: int = field(
        default=200_000,
        metadata=build_metadata(build_integer_kind(1), "Maximum size of a result; an error replaces a larger one."),
    )
    max_tool_calls_per_turn: int | None = field(
        default=None,
        metadata=build_metadata(
            build_integer_kind(1),
            "Maximum number of calls kept of an answer. Not set: 1 if parallel_tool_calls is false, otherwise all.",
        ),
    )
    max_tool_definitions_count: int = field(
        default=128,
        metadata=build_metadata(build_integer_kind(1), "Maximum number of tools; a run with more does not start."),
    )
    max_tool_definitions_bytes: int = field(
        default=200_000,
        metadata=build_metadata(build_integer_kind(1), "Maximum size of all tools; a run with more does not start."),
    )
    request_overrides: JsonObject = field(
        default_factory=dict,
        metadata=build_metadata(
            OBJECT,
            "Fields of the request body, which replace those of the sampling profile. model, messages, tools, "
            "tool_choice and response_format are ignored.",
        ),
    )
    llm_options_defaults: JsonObject = field(
        default_factory=dict,
        metadata=build_metadata(OBJECT, "Defaults for fields of the request body that nothing else sets."),
    )
    message_transforms: tuple[str, ...] = field(
        default=(), metadata=build_metadata(TRANSFORM_LIST, "Transforms of the messages of a request, in order.")
    )
    tool_transforms: tuple[str, ...] = field(
        default=(), metadata=build_metadata(TRANSFORM_LIST, "Transforms of the tools of a request, in order.")
    )
    request_transforms: tuple[str, ...] = field(
        default=(),
        metadata=build_metadata(TRANSFORM_LIST, "Transforms of the whole request body, in order, as the last step."),
    )
    response_transforms: tuple[str, ...] = field(
        default=(),
        metadata=build_metadata(
            TRANSFORM_LIST, "Transforms of an answer, in order. Only with the method native do they read calls in text."
        ),
    )
    tool_call_transforms: tuple[str, ...] = field(
        default=(), metadata=build_metadata(TRANSFORM_LIST, "Transforms of the calls of an answer, in order.")
    )
    tool_result_transforms: tuple[str, ...] = field(
        default=(), metadata=build_metadata(TRANSFORM_LIST, "Transforms of the envelope of a result, in order.")
    )
    argument_repairs: tuple[str, ...] = field(
        default=(),
        metadata=build_metadata(
            TRANSFORM_LIST,
            "Repairs of arguments that are not a JSON object, tried in order; a truncated call is never executed.",
        ),
    )
    repair_request: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG,
            "If an answer has a call that cannot run, quote the error and ask again, once in a run. The new answer is "
            "a second sample, so results show the success of the first attempt, too.",
        ),
    )
    serial_calls: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG, "Keep only the first call of an answer, for endpoints and models that cannot make several."
        ),
    )
    tool_use_prompt: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG, "Method native: tell the model to fill in the tool's parameters and to write no JSON into its text."
        ),
    )
    drop_refused_parameters: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG,
            "If the endpoint refuses a request and names an optional parameter, send the request again without it, and "
            "leave the parameter out for the rest of the run.",
        ),
    )
    left_out_parameters: tuple[str, ...] = field(
        default=(),
        metadata=build_metadata(
            build_set_kind(*OPTIONAL_PARAMETERS),
            "Optional parameters that are not sent, for endpoints that refuse them.",
        ),
    )
    wire_standard_only: bool = field(
        default=False,
        metadata=build_metadata(
            FLAG,
            "Read only calls that a published wire standard allows: tool_calls is a list of functions with id, name "
            "and the text of a JSON object. Any other call is a parse error and does not run.",
        ),
    )
    strict: bool = field(
        default=False,
        metadata=build_metadata(FLAG, "Refuse unknown transform names instead of ignoring them."),
    )


_ENGINE_DEFAULT = Policy()
KEYS: dict[str, KeySpec] = {
    key.name: KeySpec(key.name, key.metadata["kind"], getattr(_ENGINE_DEFAULT, key.name), key.metadata["doc"])
    for key in fields(Policy)
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
            key.name, key.kind.name, key.kind.accepts, key.kind.merge, key.default, key.doc, key.kind.choices
        )
        for key in KEYS.values()
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
        origins: the layer by name of each leaf of an object (`request_overrides.parallel_tool_calls`), each element of
            a joined list (`response_transforms[0]`) and each other key (`max_turns`, or a key whose object or list is
            empty). The layer of the engine's defaults is `engine`.
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
    values = {name: LayeredValue(key_spec) for name, key_spec in KEYS.items()}
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
