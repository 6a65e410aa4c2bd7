"""One turn: build the request from policy and messages, and parse the answer into text and calls."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from toolbench.engine.events import AnswerDecoder, Ask, OmittedParameter, OnDelta, Request
from toolbench.engine.loop.ids import list_call_ids, repair_ids
from toolbench.engine.loop.turn_setup import TurnSetup
from toolbench.engine.methods.argument_repair import (
    RepairedCalls,
    build_violation_errors,
    get_mode_name,
    list_parse_errors,
    refuse_blank_last_call,
    repair_calls,
)
from toolbench.engine.methods.native import NativeMethod
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.methods.streaming_calls import CallWatchingDecoder
from toolbench.engine.policy.settings import Policy
from toolbench.engine.strict_json import encode_object, write_json
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.transforms import apply_calls, apply_message, apply_request, apply_response
from toolbench.engine.transforms.reasoning import REASONING_HISTORY
from toolbench.engine.transforms.responses import TEXT_CALL_TRANSFORMS
from toolbench.engine.types import (
    Finding,
    JsonObject,
    Message,
    ReadArguments,
    ToolCall,
    TransformChange,
    Turn,
    get_called_function,
)
from toolbench.engine.wire_formats.chat_answer import ChatAnswer
from toolbench.engine.wire_formats.findings import list_findings
from toolbench.engine.wire_formats.parse_answer import get_message_text
from toolbench.engine.wire_formats.published_standard import keep_standard_calls

USAGE_OPTIONS: JsonObject = {"include_usage": True}  # `stream_options` of streamed requests without their own
MAX_STOP_TEXTS = 4  # of the method and the options together; several APIs accept no more


def build_ask(
    setup: TurnSetup,
    turn: int,
    messages: Sequence[Message],
    *,
    has_tools: bool,
    must_call: bool = False,
    on_delta: OnDelta = lambda delta: None,
) -> Ask:
    """Return the request of one turn with the decoder of its answer.

    Args:
        setup: the setup of the run.
        turn: number of the turn, from 0.
        messages: the conversation without the system text; not changed.
        has_tools: whether the request has tools.
        must_call: whether the run fails without a call and has none yet; a constraint then allows only calls.
        on_delta: called with each part of a streamed answer.
    """

    def parse_turn(answer: ChatAnswer) -> Turn:
        return parse_chat_turn(setup, answer, has_tools=has_tools, taken_ids=frozenset(list_call_ids(messages)))

    decoder = _build_decoder(setup, parse_turn, on_delta, has_tools=has_tools)
    return Ask(build_request(setup, turn, messages, has_tools=has_tools, must_call=must_call), decoder)


def _build_decoder(
    setup: TurnSetup, parse_turn: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, has_tools: bool
) -> AnswerDecoder:
    tools = setup.tools.definitions if has_tools else ()
    build_watcher = setup.call_method.build_watcher(tools) if setup.is_streamed and tools else None
    if build_watcher is None:
        return setup.wire_format.build_decoder(parse_turn, on_delta, is_streamed=setup.is_streamed)
    return CallWatchingDecoder(
        lambda listener: setup.wire_format.build_decoder(parse_turn, listener, is_streamed=True),
        on_delta,
        build_watcher,
    )


def build_request(
    setup: TurnSetup, turn: int, messages: Sequence[Message], *, has_tools: bool, must_call: bool = False
) -> Request:
    """Return the request of one turn; the arguments are those of `build_ask`.

    If the body has no `tools`, `parallel_tool_calls` is left out: some endpoints refuse it then.
    """
    system = [{"role": "system", "content": setup.system}] if setup.system.strip() else []
    sent_messages, changes = apply_message(
        [*system, *messages],
        _list_message_transforms(setup.policy),
        setup.build_transform_context(has_tools=has_tools),
    )
    body: JsonObject = {"model": setup.model, "messages": sent_messages}
    tools_json = list(setup.tools_json) if has_tools else []
    body = setup.call_method.prepare_body(body, tools_json, _get_tool_choice(setup.policy, must_call))
    if has_tools:
        changes = (*setup.tool_changes, *changes)
    options = {name: value for name, value in setup.options.items() if name not in body}
    if "tools" not in body:
        options.pop("parallel_tool_calls", None)
    stream_fields = _build_stream_fields(options.pop("stream_options", USAGE_OPTIONS)) if setup.is_streamed else {}
    shared_fields, shared_changes = _merge_shared_fields(body, setup.options)
    fields = {**body, **options, **shared_fields, **stream_fields}
    body, body_changes = apply_request(fields, setup.policy.request_transforms)
    wire_body, wire_changes = setup.wire_format.encode(body)
    omitted_parameters = tuple(omitted for name, omitted in setup.omitted_parameters.items() if name in wire_body)
    wire_changes = (
        *wire_changes,
        *(_build_omission_change(omitted, wire_body[omitted.name]) for omitted in omitted_parameters),
    )
    wire_body = {name: value for name, value in wire_body.items() if name not in setup.omitted_parameters}
    return Request(
        turn=turn,
        path=setup.wire_format.path,
        body=encode_object(wire_body, setup.get_unchanged_json(wire_body)),
        has_tools=has_tools,
        is_streamed=setup.is_streamed,
        changes=(*changes, *shared_changes, *body_changes, *wire_changes),
        truncation_retries=setup.policy.cut_stream_retries if setup.is_streamed else 0,
        omitted_parameters=omitted_parameters,
    )


def _build_omission_change(omitted_parameter: OmittedParameter, value: Any) -> TransformChange:
    return TransformChange("request", "drop_refused_parameters", f"$.{omitted_parameter.name}", write_json(value), "")


def _list_message_transforms(policy: Policy) -> tuple[str, ...]:
    """Return the names of the message transforms.

    In order: the transform for the reasoning history, those of the policy, and the one that makes call ids match the
    endpoint's pattern. The first and the last are left out if there is no such transform or pattern.
    """
    reasoning = REASONING_HISTORY.get(policy.reasoning_history)
    return (
        *([reasoning] if reasoning else []),
        *policy.message_transforms,
        *(["tool_call_ids_fit_pattern"] if policy.tool_id_pattern else []),
    )


def _merge_shared_fields(body: JsonObject, options: JsonObject) -> tuple[JsonObject, tuple[TransformChange, ...]]:
    """Merge the fields `stop` and `output_config` where both the method and the options set them.

    `stop` has the texts of the method, then those of the options up to MAX_STOP_TEXTS in all. A change names the texts
    that are left out. In `output_config`, the keys of the method replace those of the options.

    Returns:
        The merged fields only, and the changes.
    """
    fields: JsonObject = {}
    changes: tuple[TransformChange, ...] = ()
    method_texts, requested_texts = body.get("stop"), options.get("stop")
    if method_texts is not None and requested_texts is not None:
        requested_texts = requested_texts if isinstance(requested_texts, list) else [requested_texts]
        added_texts = [text for text in requested_texts if text not in method_texts]
        added_count = max(MAX_STOP_TEXTS - len(method_texts), 0)
        fields["stop"] = [*method_texts, *added_texts[:added_count]]
        if omitted_texts := added_texts[added_count:]:
            changes = (TransformChange("request", "limit_stop_texts", "$.stop", write_json(omitted_texts), ""),)
    if "output_config" in body and isinstance(requested_config := options.get("output_config"), dict):
        fields["output_config"] = {**requested_config, **body["output_config"]}
    return fields, changes


def _build_stream_fields(stream_options: Any) -> JsonObject:
    return {"stream": True, **({} if stream_options is None else {"stream_options": stream_options})}


def _get_tool_choice(policy: Policy, must_call: bool) -> RequestChoice:
    """Return the policy's tool choice; "auto" becomes "required" if a constrained answer must have a call."""
    is_call_required = must_call and policy.method == "constrained" and policy.tool_choice == "auto"
    return "required" if is_call_required else policy.tool_choice


def parse_chat_turn(setup: TurnSetup, answer: ChatAnswer, *, has_tools: bool, taken_ids: Collection[str] = ()) -> Turn:
    """Parse an answer: apply transforms, find calls, repair their arguments, select the calls to keep.

    At most `setup.max_calls` calls are kept; none without tools or if the stream was truncated. The message for the
    history has the kept calls only, so that each call in it gets a result. Generated ids differ from the ids in the
    plan's history and from `taken_ids`, the ids in the conversation as it is sent. An id from the endpoint is kept even
    if it equals one of these.
    """
    policy = setup.policy
    message, changes = apply_response(
        answer.message, _list_response_transforms(setup), setup.build_transform_context(has_tools=has_tools)
    )
    message, violations = _select_standard_calls(setup, message, answer.message) if has_tools else (message, ())
    parsed_answer = setup.call_method.parse_answer(message, setup.tools.definitions if has_tools else ())
    reported_findings = _list_reported_findings(setup, parsed_answer, answer.finish_reason)
    mode = get_mode_name(setup.call_method.method) if has_tools else ""
    repaired_calls = _repair_calls(policy, parsed_answer, answer, mode) if has_tools else RepairedCalls([], [])
    reserved_ids = setup.history_call_ids.union(taken_ids).difference(list_call_ids([answer.message]))
    kept_calls = [] if answer.is_truncated else _complete_calls(repaired_calls.calls, reserved_ids)[: setup.max_calls]
    history_message = _build_history_message(parsed_answer.message or message)
    return Turn(
        message=setup.call_method.build_assistant_message(history_message, kept_calls),
        text=parsed_answer.text,
        calls=tuple(map(_build_tool_call, kept_calls, repaired_calls.read_arguments)),
        calls_found=tuple(map(_build_tool_call, parsed_answer.calls)),
        ignored_call_count=len(repaired_calls.calls if has_tools else parsed_answer.calls) - len(kept_calls),
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        method_used=parsed_answer.method_used,
        changes=(*changes, *parsed_answer.changes, *repaired_calls.changes),
        findings=(*answer.findings, *violations, *parsed_answer.findings, *repaired_calls.findings, *reported_findings),
        upstream=answer.upstream,
        model_echoed=answer.model_echoed,
        fingerprint=answer.fingerprint,
        is_truncated=answer.is_truncated,
        is_paused=answer.is_paused,
        parse_errors=(
            *build_violation_errors(violations, answer.message, mode),
            *list_parse_errors(parsed_answer, mode),
            *repaired_calls.parse_errors,
        ),
        has_unexecuted_call=parsed_answer.has_unexecuted_call or bool(violations and not kept_calls),
        mode=mode,
    )


def _list_response_transforms(setup: TurnSetup) -> tuple[str, ...]:
    """Return the names of the policy's response transforms.

    A method that reads calls in the text finds none that a transform has moved to `tool_calls`. Transforms that read
    calls in the text are therefore left out unless the method is native.
    """
    names = setup.policy.response_transforms
    if isinstance(setup.call_method, NativeMethod):
        return names
    return tuple(name for name in names if name not in TEXT_CALL_TRANSFORMS)


def _repair_calls(policy: Policy, parsed_answer: ParsedAnswer, answer: ChatAnswer, mode: str) -> RepairedCalls:
    """Return the calls after tool call transforms and repairs, with the changes of both."""
    calls, changes = apply_calls(parsed_answer.calls, policy.tool_call_transforms)
    is_truncated = answer.finish_reason == "length"
    parsed_values = () if changes else parsed_answer.parsed_arguments
    repaired_calls = repair_calls(calls, policy, mode=mode, is_truncated=is_truncated, parsed_values=parsed_values)
    if is_truncated:
        repaired_calls = refuse_blank_last_call(repaired_calls, parsed_answer.calls, mode)
    return replace(repaired_calls, changes=(*changes, *repaired_calls.changes))


def _select_standard_calls(
    setup: TurnSetup, message: Message, received: Message
) -> tuple[Message, tuple[Finding, ...]]:
    """Return the message without calls that no published standard allows, and a finding for each.

    The message is unchanged unless the method is native and the policy has `wire_standard_only`.

    Args:
        setup: the setup of the run.
        message: the message after response transforms.
        received: the message before them.
    """
    is_standard_only = setup.policy.wire_standard_only and isinstance(setup.call_method, NativeMethod)
    return keep_standard_calls(message, received) if is_standard_only else (message, ())


def _list_reported_findings(
    setup: TurnSetup, parsed_answer: ParsedAnswer, finish_reason: str | None
) -> Iterator[Finding]:
    """Yield the findings about the format of an answer, without those that are usual for the endpoint.

    `arguments_missing`, which says that missing arguments were read as `{}`, is left out if the policy has
    `wire_standard_only`: such a call is then a parse error.
    """
    excluded_codes = {*setup.wire_format.usual_findings, *setup.policy.usual_findings}
    if setup.policy.wire_standard_only:
        excluded_codes.add("arguments_missing")
    calls = parsed_answer.calls if parsed_answer.method_used == "tool_use" else ()
    findings = [
        *(parsed_answer.token_limit_findings if finish_reason == "length" else ()),
        *list_findings(calls, parsed_answer.text, finish_reason),
    ]
    return (finding for finding in findings if finding.code not in excluded_codes)


def _complete_calls(calls: list[JsonObject], taken_ids: Collection[str]) -> list[JsonObject]:
    """Return the calls with trimmed names, unique ids and the type `function`.

    Missing arguments become `{}`; other fields are unchanged.
    """
    ids = repair_ids((_render_scalar(call.get("id")) for call in calls), taken_ids)
    return [_complete_call(call, new_id) for call, new_id in zip(calls, ids, strict=True)]


def _complete_call(call: JsonObject, new_id: str) -> JsonObject:
    function = get_called_function(call)
    arguments = function.get("arguments")
    normalised_function = {
        **function,
        "name": _render_scalar(function.get("name")),
        "arguments": "{}" if arguments is None else arguments,
    }
    return {**call, "id": new_id, "type": "function", "function": normalised_function}


def _build_tool_call(call: JsonObject, arguments_read: ReadArguments | None = None) -> ToolCall:
    function = get_called_function(call)
    return ToolCall(
        _render_scalar(call.get("id")), _render_scalar(function.get("name")), function.get("arguments"), arguments_read
    )


def _render_scalar(value: Any) -> str:
    """Return a string, an integer or a boolean as trimmed text; "" for other values."""
    return str(value).strip() if isinstance(value, (str, int)) else ""


def _build_history_message(message: Message) -> Message:
    """Return the message without its calls, for the history; unknown fields are kept unless they are null."""
    excluded_fields = ("role", "content", "tool_calls", "function_call")
    other_fields = {name: value for name, value in message.items() if name not in excluded_fields and value is not None}
    return {"role": "assistant", "content": get_message_text(message), **other_fields}
