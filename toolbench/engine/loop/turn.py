"""One exchange with the model: policy and messages become a request, an answer becomes text and calls."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from toolbench.engine.events import AnswerDecoder, Ask, OmittedParameter, OnDelta, Request
from toolbench.engine.loop.ids import list_call_ids, repair_ids
from toolbench.engine.loop.turn_setup import TurnSetup
from toolbench.engine.methods.argument_repair import (
    build_departure_errors,
    get_mode,
    list_unreadable_calls,
    repair_calls,
)
from toolbench.engine.methods.native import NativeMethod
from toolbench.engine.methods.streaming_calls import CallWatchingDecoder
from toolbench.engine.policy.settings import Policy
from toolbench.engine.strict_json import encode_object, write_json
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.transforms import apply_calls, apply_message, apply_request, apply_response
from toolbench.engine.transforms.reasoning import REASONING_HISTORY
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

USAGE_OPTIONS: JsonObject = {"include_usage": True}


def build_ask(
    setup: TurnSetup,
    turn: int,
    messages: Sequence[Message],
    *,
    with_tools: bool,
    must_call: bool = False,
    on_delta: OnDelta = lambda delta: None,
) -> Ask:
    """Return the request of one turn with the decoder of its answer.

    Args:
        setup: the setup of the run.
        turn: number of the turn.
        messages: the conversation without the system text; not changed.
        with_tools: whether the request has tools.
        must_call: whether the run fails without a call and has none yet; a constraint then allows only calls.
        on_delta: called with each part of a streamed answer.
    """

    def read(answer: ChatAnswer) -> Turn:
        return read_answer(setup, answer, with_tools=with_tools, taken=frozenset(list_call_ids(messages)))

    decoder = _build_decoder(setup, read, on_delta, with_tools=with_tools)
    return Ask(build_request(setup, turn, messages, with_tools=with_tools, must_call=must_call), decoder)


def _build_decoder(
    setup: TurnSetup, read: Callable[[ChatAnswer], Turn], on_delta: OnDelta, *, with_tools: bool
) -> AnswerDecoder:
    tools = setup.tools.definitions if with_tools else ()
    watch = setup.asking.watch(tools) if setup.stream and tools else None
    if watch is None:
        return setup.wire.decoder(read, on_delta, stream=setup.stream)
    return CallWatchingDecoder(lambda payload: setup.wire.decoder(read, payload, stream=True), on_delta, watch)


def build_request(
    setup: TurnSetup, turn: int, messages: Sequence[Message], *, with_tools: bool, must_call: bool = False
) -> Request:
    """Return the request of one turn.

    Without tools, `parallel_tool_calls` is left out: it has no effect and some endpoints refuse it.
    """
    system = [{"role": "system", "content": setup.system}] if setup.system.strip() else []
    sent, changes = apply_message(
        [*system, *messages], _list_message_transforms(setup.policy), setup.facts(with_tools=with_tools)
    )
    body: JsonObject = {"model": setup.model, "messages": sent}
    tools, tools_json = (setup.tools.definitions, list(setup.tools_json)) if with_tools else ((), [])
    body = setup.asking.prepare_body(body, tools, tools_json, _get_tool_choice(setup.policy, must_call))
    if with_tools:
        changes = (*setup.tool_changes, *changes)
    options = {name: value for name, value in setup.options.items() if name not in body}
    if "tools" not in body:
        options.pop("parallel_tool_calls", None)
    streaming = _merge_stream_options(options.pop("stream_options", USAGE_OPTIONS)) if setup.stream else {}
    body, body_changes = apply_request({**body, **options, **streaming}, setup.policy.request_transforms)
    travelling, on_the_wire = setup.wire.encode(body)
    left_out = tuple(omitted for name, omitted in setup.left_out.items() if name in travelling)
    on_the_wire = (*on_the_wire, *(_build_omission_change(omitted, travelling[omitted.name]) for omitted in left_out))
    travelling = {name: value for name, value in travelling.items() if name not in setup.left_out}
    return Request(
        turn=turn,
        path=setup.wire.path,
        body=encode_object(travelling, setup.written(travelling)),
        tools_sent=with_tools,
        stream=setup.stream,
        changes=(*changes, *body_changes, *on_the_wire),
        cut_retries=setup.policy.cut_stream_retries if setup.stream else 0,
        left_out=left_out,
    )


def _build_omission_change(left_out: OmittedParameter, value: Any) -> TransformChange:
    return TransformChange("request", "drop_refused_parameters", f"$.{left_out.name}", write_json(value), "")


def _list_message_transforms(policy: Policy) -> tuple[str, ...]:
    """Return the names of the message transforms.

    They are: the one for the reasoning history, those of the policy, and the check of ids if the endpoint has a
    pattern.
    """
    reasoning = REASONING_HISTORY.get(policy.reasoning_history)
    return (
        *([reasoning] if reasoning else []),
        *policy.message_transforms,
        *(["tool_call_ids_fit_pattern"] if policy.tool_id_pattern else []),
    )


def _merge_stream_options(given: Any) -> JsonObject:
    return {"stream": True, **({} if given is None else {"stream_options": given})}


def _get_tool_choice(policy: Policy, must_call: bool) -> RequestChoice:
    """Return the policy's tool choice; "required" for a constrained answer if the run needs a call."""
    held = must_call and policy.method == "constrained" and policy.tool_choice == "auto"
    return "required" if held else policy.tool_choice


def read_answer(setup: TurnSetup, answer: ChatAnswer, *, with_tools: bool, taken: Collection[str] = ()) -> Turn:
    """Parse an answer: apply the transforms, find the calls, repair them, and keep those that may run.

    The message for the history has the kept calls only, so that each call has a result. Without tools no call is kept.
    New calls do not get ids that are `taken` in the conversation, unless the endpoint gave them.
    """
    policy = setup.policy
    message, changes = apply_response(answer.message, policy.response_transforms, setup.facts(with_tools=with_tools))
    message, departures = _keep_standard_calls(setup, message, answer.message) if with_tools else (message, ())
    read = setup.asking.read(message, setup.tools.definitions if with_tools else ())
    usual = {*setup.wire.usual_findings, *policy.usual_findings}
    noted = list_findings(read.calls if read.path == "tool_use" else (), read.text, answer.finish_reason)
    remarks = (remark for remark in noted if remark.code not in usual)
    calls, call_changes = apply_calls(read.calls, policy.tool_call_transforms if with_tools else ())
    mode = get_mode(setup.asking.method) if with_tools else ""
    calls_made, values = (calls, () if call_changes else read.values) if with_tools else ((), ())
    mended = repair_calls(calls_made, policy, mode=mode, cut=answer.finish_reason == "length", values=values)
    shut = frozenset(taken).difference(list_call_ids([answer.message]))
    kept = [] if answer.cut else _repair_calls(mended.calls, shut)[: setup.calls_kept]
    return Turn(
        message=setup.asking.assistant_message(_build_history_message(read.message or message), kept),
        text=read.text,
        calls=tuple(map(_build_tool_call, kept, mended.reads)),
        calls_found=tuple(map(_build_tool_call, read.calls)),
        ignored_calls=len(calls) - len(kept),
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        path=read.path,
        changes=(*changes, *read.changes, *call_changes, *mended.changes),
        findings=(
            *answer.findings,
            *departures,
            *read.findings,
            *mended.findings,
            *_drop_filled_in_findings(remarks, policy),
        ),
        upstream=answer.upstream,
        model_echoed=answer.model_echoed,
        fingerprint=answer.fingerprint,
        cut=answer.cut,
        continues=answer.continues,
        parse_errors=(
            *build_departure_errors(departures, answer.message, mode),
            *list_unreadable_calls(read, mode),
            *mended.parse_errors,
        ),
        not_executed=read.not_executed or bool(departures and not kept),
        mode=mode,
    )


def _keep_standard_calls(setup: TurnSetup, message: Message, received: Message) -> tuple[Message, tuple[Finding, ...]]:
    """Return the message with the calls that the policy reads, for methods with calls in a field of their own."""
    is_standard_only = setup.policy.wire_standard_only and isinstance(setup.asking, NativeMethod)
    return keep_standard_calls(message, received) if is_standard_only else (message, ())


def _drop_filled_in_findings(remarks: Iterable[Finding], policy: Policy) -> Iterator[Finding]:
    """Yield the findings without those on added arguments, if the policy reads standard calls only and so adds none."""
    return (remark for remark in remarks if not (policy.wire_standard_only and remark.code == "arguments_missing"))


def _repair_calls(calls: list[JsonObject], taken: Collection[str]) -> list[JsonObject]:
    """Return the calls with trimmed names and unique ids; other fields are unchanged."""
    ids = repair_ids((_as_scalar(call.get("id")) for call in calls), taken)
    return [_replace_id(call, new_id) for call, new_id in zip(calls, ids, strict=True)]


def _replace_id(call: JsonObject, new_id: str) -> JsonObject:
    function = get_called_function(call)
    arguments = function.get("arguments")
    named = {
        **function,
        "name": _as_scalar(function.get("name")),
        "arguments": "{}" if arguments is None else arguments,
    }
    return {**call, "id": new_id, "type": "function", "function": named}


def _build_tool_call(call: JsonObject, read: ReadArguments | None = None) -> ToolCall:
    function = get_called_function(call)
    return ToolCall(_as_scalar(call.get("id")), _as_scalar(function.get("name")), function.get("arguments"), read)


def _as_scalar(value: Any) -> str:
    return str(value).strip() if isinstance(value, (str, int)) else ""


def _build_history_message(message: Message) -> Message:
    """Return the message without its calls, for the history; unknown fields are kept unless they are empty."""
    left_out = ("role", "content", "tool_calls", "function_call")
    extra = {name: value for name, value in message.items() if name not in left_out and value is not None}
    return {"role": "assistant", "content": get_message_text(message), **extra}
