"""Setup shared by all turns of a run, built once from the policy and the plan."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from operator import is_
from typing import Any

from toolbench.engine.constraints.compiling import ConstraintOptions
from toolbench.engine.constraints.schema_support import SizeLimits
from toolbench.engine.errors import PlanError
from toolbench.engine.events import OmittedParameter
from toolbench.engine.identity_key import IdentityKey
from toolbench.engine.light_dataclass import light
from toolbench.engine.methods.interface import CallMethod
from toolbench.engine.methods.registry import build_method
from toolbench.engine.policy.layered_key import merge_options
from toolbench.engine.policy.limits import check_tool_set, get_max_calls
from toolbench.engine.policy.settings import Policy
from toolbench.engine.repairs import check_repairs
from toolbench.engine.sized_cache import SizedCache, estimate_bytes
from toolbench.engine.strict_json import MAX_DEPTH, is_too_deep, sort_keys, write_json
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.tools.validation import check_schema
from toolbench.engine.transforms import TransformContext, apply_tools, check_names
from toolbench.engine.types import JsonObject, TransformChange
from toolbench.engine.wire_formats.registry import CHAT, WireFormat

_OMITTED_BY_SETTINGS = "The settings leave it out."
MAX_PARALLEL_CALLS = 8  # of one constrained answer, if `parallel_tool_calls` is true and the policy sets no limit


@light(frozen=True, slots=True)
class TurnSetup:
    """Setup shared by all turns of a run.

    Attributes:
        system: text of the system message; blank for none.
        options: fields of every request body, sorted by name.
        tools: the tools that are sent and may run; none in disabled mode.
        tools_json: the tools in OpenAI's format after tool transforms.
        tools_text: `tools_json` as JSON text.
        tool_changes: changes that tool transforms and the method made to the tools.
        call_method: the method by which calls are requested.
        max_calls: maximum number of calls of one answer; None for no limit.
        is_streamed: whether answers are streamed. `stream_options` in `options` replaces the default; null sends none.
        omitted_parameters: parameters to leave out of requests, by name.
        history_call_ids: ids of calls in the plan's history. They are kept here because a method may render the history
            as text without ids.
    """

    model: str
    policy: Policy
    system: str
    options: JsonObject
    tools: ToolRegistry
    tools_json: tuple[JsonObject, ...]
    tools_text: str
    tool_changes: tuple[TransformChange, ...]
    call_method: CallMethod
    max_calls: int | None
    is_streamed: bool = False
    wire_format: WireFormat = CHAT
    omitted_parameters: Mapping[str, OmittedParameter] = field(default_factory=dict)
    history_call_ids: frozenset[str] = frozenset()

    def omit_parameters(self, omitted_parameters: Iterable[OmittedParameter]) -> "TurnSetup":
        """Return the setup with further parameters left out."""
        return replace(
            self,
            omitted_parameters={**self.omitted_parameters, **{omitted.name: omitted for omitted in omitted_parameters}},
        )

    def build_transform_context(self, *, has_tools: bool) -> TransformContext:
        """Return the context of the transforms; it has the tools only if the request has tools."""
        tools = self.tools.definitions if has_tools else ()
        policy = self.policy
        return TransformContext(tools, policy.text_format, policy.tool_id_pattern, policy.guess_untyped)

    def get_unchanged_json(self, body: JsonObject) -> dict[str, str]:
        """Return the already known JSON texts of fields of `body`, which need not be rendered again.

        Returns:
            `tools_text` by the name `tools`; {} if the tools in `body` are not those of `tools_json`.
        """
        tools_json = body.get("tools")
        are_tools_unchanged = (
            isinstance(tools_json, list)
            and len(tools_json) == len(self.tools_json)
            and all(map(is_, tools_json, self.tools_json))
        )
        return {"tools": self.tools_text} if are_tools_unchanged else {}


def prepare_turns(
    model: str, policy: Policy, *, system: str, tools: ToolRegistry, options: JsonObject, seed: int | None
) -> TurnSetup:
    """Return the setup of a run without streaming and for the wire format of chat completions.

    The caller replaces `is_streamed` and `wire_format` if they differ. Options in ascending priority: the policy's
    defaults, `options`, the policy's overrides, the seed.

    Raises:
        PlanError: the model is blank, or tools or options cannot be sent.
        UnknownTransformError: a transform or repair of the policy is unknown, in strict mode.
    """
    if not model.strip():
        raise PlanError("the plan names no model")
    offered_tools = _prepare_tools_cached(policy, tools)
    merged_options = _merge_all_options(policy, options, seed)
    call_method = _build_method(policy, merged_options)
    constraint_changes = (
        call_method.list_dropped_keywords(list(offered_tools.tools_json), policy.tool_choice)
        if offered_tools.tools_json
        else ()
    )
    return TurnSetup(
        model=model,
        policy=policy,
        system=system,
        options=merged_options,
        tools=offered_tools.tools,
        tools_json=offered_tools.tools_json,
        tools_text=offered_tools.tools_text,
        tool_changes=(*offered_tools.changes, *constraint_changes),
        call_method=call_method,
        omitted_parameters={name: OmittedParameter(name, _OMITTED_BY_SETTINGS) for name in policy.left_out_parameters},
        max_calls=get_max_calls(policy, merged_options),
    )


@light(frozen=True, slots=True)
class _OfferedTools:
    """The tools that are sent and may run, also as JSON, and the changes that transforms made to them."""

    tools: ToolRegistry
    tools_json: tuple[JsonObject, ...]
    tools_text: str
    changes: tuple[TransformChange, ...]


_offered_tools: SizedCache[tuple[IdentityKey[Any], ...], _OfferedTools] = SizedCache(max_entries=256)


def _prepare_tools_cached(policy: Policy, tools: ToolRegistry) -> _OfferedTools:
    """Return the offered tools from the cache, since trials of one configuration share policy and tools.

    Raises:
        PlanError: as in prepare_turns.
        UnknownTransformError: as in prepare_turns.
    """

    def prepare() -> tuple[_OfferedTools, int]:
        offered_tools = _prepare_tools(policy, tools)
        tool_bytes = estimate_bytes([(tool.description, tool.parameters) for tool in tools.definitions])
        return offered_tools, tool_bytes + len(offered_tools.tools_text)

    return _offered_tools.get((IdentityKey(policy), *map(IdentityKey, tools.definitions)), prepare)


def _prepare_tools(policy: Policy, tools: ToolRegistry) -> _OfferedTools:
    """Return the offered tools.

    Raises:
        PlanError: as in prepare_turns.
        UnknownTransformError: as in prepare_turns.
    """
    _check_transforms(policy)
    selected_tools = _select_tools(tools, policy)
    openai_tools = [tool.to_openai() for tool in selected_tools.list_exposed()]
    tools_json, changes = apply_tools(openai_tools, policy.tool_transforms)
    check_tool_set(tools_json, policy)
    return _OfferedTools(selected_tools, tuple(tools_json), write_json(tools_json), changes)


def _merge_all_options(policy: Policy, options: JsonObject, seed: int | None) -> JsonObject:
    """Return the options sorted by name, so that equal plans give equal bytes.

    `stream` is left out, since the plan says whether answers are streamed.

    Raises:
        PlanError: an option is not JSON.
    """
    try:
        merged_options = merge_options(policy.llm_options_defaults, options, policy.request_overrides)
        body_options = {name: value for name, value in merged_options.items() if name != "stream"}
        return dict(sort_keys({**body_options, "seed": seed} if seed is not None else body_options))
    except (TypeError, ValueError, RecursionError) as error:
        raise PlanError(f"the request options are not JSON: {error}") from None


def _select_tools(tools: ToolRegistry, policy: Policy) -> ToolRegistry:
    """Return the exposed tools that the policy allows; none in disabled mode.

    Raises:
        PlanError: a tool has a blank name or a schema that cannot be used.
    """
    if policy.tool_use_mode == "disabled":
        return ToolRegistry()
    exposed_tools = ToolRegistry(tools.select(policy.tool_allowlist, policy.tool_denylist).list_exposed())
    for tool in exposed_tools.definitions:
        if not tool.name.strip():
            raise PlanError("a tool has no name; no model could call it")
        if is_too_deep(tool.parameters):
            raise PlanError(f"the parameters of tool {tool.name} are nested deeper than {MAX_DEPTH} levels")
        if policy.validate_arguments or policy.method == "constrained":
            check_schema(tool)
    return exposed_tools


def _build_method(policy: Policy, options: JsonObject) -> CallMethod:
    """Return the method; constrained answers may have several calls only if `parallel_tool_calls` is true."""
    is_parallel = options.get("parallel_tool_calls") is True
    max_calls = (policy.max_tool_calls_per_turn or MAX_PARALLEL_CALLS) if is_parallel else 1
    limits = SizeLimits(policy.constraint_max_string, policy.constraint_max_items)
    return build_method(policy, ConstraintOptions(max_calls=max_calls, limits=limits))


def _check_transforms(policy: Policy) -> None:
    check_repairs(policy.argument_repairs, strict=policy.strict)
    for transform_type in ("message", "tool", "request", "response", "tool_call", "tool_result"):
        check_names(transform_type, getattr(policy, f"{transform_type}_transforms"), strict=policy.strict)
