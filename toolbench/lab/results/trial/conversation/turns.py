"""Conversation of a trial: its messages in order, with expected calls, results and errors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from django.template.defaultfilters import pluralize

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, SchemaError
from toolbench.evals.call_comparison import (
    ArgumentDifference,
    CallStatus,
    ComparedCall,
    ComparedCalls,
    MadeCall,
    compare_calls,
)
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.lab.models import Step, Trial
from toolbench.lab.results.trial.bodies.partial_bodies import StoredBodies
from toolbench.lab.results.trial.conversation.argument_lines import (
    ArgumentPane,
    render_expected,
    render_made,
    render_plain,
)
from toolbench.lab.results.trial.conversation.request_messages import SentMessage, parse_sent_request
from toolbench.lab.scenarios.catalogue import load_scenario
from toolbench.lab.traces.code_view import escape_unprintable
from toolbench.lab.traces.step_facts import build_stored

MAX_TEXT_CHARS = 20_000  # of one message; the page of the step shows the whole message
MAX_HEAD_CHARS = 700
MAX_HEAD_LINES = 8
ROLE_TITLES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool", "prompt": "Prompt"}
IMPORTED_SENTENCE = "The trial was imported from a log, so its expected calls are unknown."
UNKNOWN_VERSION_SENTENCE = "Version {version} of {scenario} is not installed, so its expected calls are unknown."
NOT_READ_SENTENCE = "The first request is too large for this view. Open its step."

_CALL_MARKS = {CallStatus.AS_EXPECTED: "pass", CallStatus.NOT_COMPARED: "na"}


@dataclass(frozen=True, slots=True)
class MessageText:
    """Text of a message.

    Attributes:
        head: at most its first MAX_HEAD_LINES lines and MAX_HEAD_CHARS characters.
        whole: the text up to MAX_TEXT_CHARS; empty if `head` is all of it.
        lines: number of lines of the text up to MAX_TEXT_CHARS.
    """

    head: str
    whole: str = ""
    lines: int = 0


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """Call of an answer, compared with the expected call.

    Attributes:
        mark: pass, fail or na.
        word: result of the comparison in words, "not run" for a call that was not run, or empty.
        differences: differences of its arguments from the expected ones.
        made: its arguments.
        expected: expected arguments; None if they are unknown or do not differ.
        is_first_bad: whether it is the first problem of the trial.
    """

    tool: str
    mark: str
    word: str
    differences: tuple[ArgumentDifference, ...]
    made: ArgumentPane
    expected: ArgumentPane | None
    is_first_bad: bool


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """Message of the conversation.

    Attributes:
        role: system, user, assistant, tool, prompt, or failed for a failed request.
        notes: short facts, such as the turn and the duration of the request.
        text: its text; None without one.
        reasoning: reasoning of an answer; None without it.
        calls: calls of an answer.
        sent_calls: calls of an assistant's message in the first request.
        key: key of the timeline row that shows the whole message.
        ok: False for a call that was refused or failed, and for a failed request.
        word: outcome of a call: ok, refused or failed; empty for other messages.
        problem: code and description of an error or an unreadable call; both are empty without one.
        result: value that the tool returned; None without one.
        is_first_bad: whether it is the first problem of the trial.
    """

    role: str
    title: str
    notes: tuple[str, ...] = ()
    text: MessageText | None = None
    reasoning: MessageText | None = None
    calls: tuple[AnswerCall, ...] = ()
    sent_calls: tuple[str, ...] = ()
    key: str = ""
    ok: bool = True
    word: str = ""
    problem: tuple[str, str] = ("", "")
    result: ArgumentPane | None = None
    is_first_bad: bool = False


@dataclass(frozen=True, slots=True)
class TrialConversation:
    """Conversation of a trial.

    Attributes:
        note: why expected calls are not shown; empty if they are shown.
        missing: (tool, arguments) of each expected call that was not made; unknown arguments are None.
    """

    messages: tuple[ConversationMessage, ...]
    note: str = ""
    missing: tuple[tuple[str, ArgumentPane | None], ...] = ()


def build_conversation(
    trial: Trial, version: int, steps: Sequence[Step], stored: Mapping[int, StoredBodies]
) -> TrialConversation:
    """Return the conversation of a trial.

    The function sends one query if the trial's scenario is a test case, otherwise none.

    Expected calls are not stored: they are computed from the instance, which the trial's seed determines.

    Args:
        trial: the trial, with its run.
        version: scenario version of its current verdict.
        steps: steps of its current execution, in order.
        stored: step details by step id, and the request of the first exchange.
    """
    expected, note = load_expected_calls(trial, version)
    tool_steps = [step for step in steps if step.kind == Step.Kind.TOOL]
    made_calls = [_build_made_call(step, _get_facts(step, stored)) for step in tool_steps]
    compared = compare_calls(made_calls, expected) if expected is not None else ComparedCalls((), (), note)
    by_step = dict(zip((step.pk for step in tool_steps), compared.calls, strict=False))
    builder = _ConversationBuilder(trial, stored, by_step)
    messages = (*_build_first_messages(steps, stored), *builder.iter_messages(steps))
    missing = compared.missing if trial.state == Trial.State.DONE else ()
    return TrialConversation(
        messages,
        compared.note,
        tuple((call.tool, None if call.arguments is None else render_plain(call.arguments)) for call in missing),
    )


def build_plain_conversation(steps: Sequence[Step], stored: Mapping[int, StoredBodies]) -> TrialConversation:
    """Return the conversation of exchanges that belong to no trial. Calls are shown without expected ones.

    Args:
        steps: the exchanges, in order; the messages of the first one's request come first.
        stored: step details by step id, and the request of the first exchange.
    """
    builder = _ConversationBuilder(Trial(outcome=Trial.Outcome.PASS), stored, {})  # no step is the first problem
    return TrialConversation((*_build_first_messages(steps, stored), *builder.iter_messages(steps)))


def load_expected_calls(trial: Trial, version: int) -> tuple[ExpectedCalls | None, str]:
    """Return the expected calls of the trial's instance and "", or None and a sentence with the reason."""
    if trial.run.origin.get("kind") == "inspect":
        return None, IMPORTED_SENTENCE
    try:
        scenario = load_scenario(trial.scenario, version)
    except KeyError:
        scenario = None
    if scenario is None or scenario.version != version:
        return None, UNKNOWN_VERSION_SENTENCE.format(version=version, scenario=trial.scenario)
    instance = scenario.draw_instance(trial.instance_seed, kind=trial.instance_kind)
    return scenario.build_expected_calls(instance), ""


def _get_facts(step: Step, stored: Mapping[int, StoredBodies]) -> JsonObject:
    return (stored.get(step.pk) or StoredBodies()).facts or {}


def _build_made_call(step: Step, facts: JsonObject) -> MadeCall:
    arguments = facts.get("arguments")
    errors = tuple(build_stored(SchemaError, error) for error in facts.get("schema_errors") or ())
    parsed = arguments if isinstance(arguments, dict) else None
    return MadeCall(step.tool_name, parsed, bool(step.ok), errors, step.error_code)


def _build_first_messages(steps: Sequence[Step], stored: Mapping[int, StoredBodies]) -> Iterator[ConversationMessage]:
    """Yield the messages of the first request; if it was read only in part, a message that says so."""
    first = next((step for step in steps if step.kind == Step.Kind.EXCHANGE), None)
    if first is None:
        return
    body = stored.get(first.pk, StoredBodies()).request
    request = parse_sent_request(body)
    key = f"{first.ordinal}.request"
    if not request.messages and 0 < len(body) < first.request_bytes:  # the body is empty once bodies were removed
        yield ConversationMessage("system", "System", text=MessageText(NOT_READ_SENTENCE), key=key)
    for index, message in enumerate(request.messages):
        yield _build_sent_message(message, key, tools=request.tools if index == 0 else ())


def _build_sent_message(message: SentMessage, key: str, *, tools: Sequence[str]) -> ConversationMessage:
    notes = (f"{len(tools)} tool{pluralize(len(tools))} offered: {', '.join(tools)}",) if tools else ()
    role = message.role if message.role in ROLE_TITLES else "user"
    return ConversationMessage(
        role,
        ROLE_TITLES.get(message.role, message.role),
        notes=notes,
        text=_build_text(message.text),
        sent_calls=tuple(escape_unprintable(call[:MAX_HEAD_CHARS]) for call in message.calls),
        key=key,
    )


def _build_text(text: str) -> MessageText | None:
    """Return the text of a message, truncated to MAX_TEXT_CHARS; None for a blank one."""
    if not text.strip():
        return None
    whole = escape_unprintable(text[:MAX_TEXT_CHARS]) + (" …" if len(text) > MAX_TEXT_CHARS else "")
    lines = whole.splitlines()
    head = "\n".join(lines[:MAX_HEAD_LINES])[:MAX_HEAD_CHARS]
    return MessageText(head, whole if len(head) < len(whole.rstrip("\n")) else "", len(lines))


@dataclass(frozen=True, slots=True)
class _ConversationBuilder:
    """Builder of the messages of a trial's steps.

    Attributes:
        stored: step details by step id.
        compared: comparison of each call with an expected call, by the id of its tool step.
    """

    trial: Trial
    stored: Mapping[int, StoredBodies]
    compared: Mapping[int, ComparedCall]

    def iter_messages(self, steps: Sequence[Step]) -> Iterator[ConversationMessage]:
        """Yield the messages of the steps in order."""
        for index, step in enumerate(steps):
            facts = _get_facts(step, self.stored)
            if step.kind == Step.Kind.TOOL:
                yield self._build_result(step, facts)
                continue
            if user_text := _build_text(str(facts.get("said") or "")):
                yield ConversationMessage("user", "User", text=user_text, key=f"{step.ordinal}.request")
            if step.ok:
                yield self._build_answer(step, facts, _list_tool_steps(steps[index + 1 :]))
            else:
                yield self._build_failed_request(step)

    def _build_answer(self, step: Step, facts: JsonObject, tool_steps: Sequence[Step]) -> ConversationMessage:
        calls = [get_object(call) for call in facts.get("calls") or ()]
        pairs = [(call, tool_steps[index] if index < len(tool_steps) else None) for index, call in enumerate(calls)]
        errors = facts.get("parse_errors") or ()
        error_text = "; ".join(f"{error['error']}: {error['snippet']}" for error in errors)
        message = get_object(facts.get("message"))
        return ConversationMessage(
            "assistant",
            "Assistant",
            notes=tuple(_list_notes(step)),
            text=_build_text(str(facts.get("text") or "")),
            reasoning=_build_text(str(message.get("reasoning_content") or message.get("reasoning") or "")),
            calls=tuple(self._build_call(call, tool_step) for call, tool_step in pairs),
            key=f"{step.ordinal}.calls",
            problem=(str(facts.get("notice") or ""), escape_unprintable(error_text[:MAX_HEAD_CHARS])),
            is_first_bad=self._is_first_bad(step),
        )

    def _build_call(self, call: JsonObject, step: Step | None) -> AnswerCall:
        compared = self.compared.get(step.pk) if step else None
        facts = _get_facts(step, self.stored) if step else {}
        arguments = facts.get("arguments")
        differences = compared.differences if compared else ()
        expected = compared.expected.arguments if compared and compared.expected else None
        arguments_text = call.get("arguments")
        return AnswerCall(
            tool=escape_unprintable(str(call.get("name") or "(no name)")),
            mark=_CALL_MARKS.get(compared.status, "fail") if compared else "na",
            word=_describe_status(compared) if step else "not run",
            differences=differences,
            made=render_made(arguments, differences) if isinstance(arguments, dict) else render_plain(arguments_text),
            expected=render_expected(expected, differences) if expected is not None and differences else None,
            is_first_bad=step is not None and self._is_first_bad(step),
        )

    def _build_result(self, step: Step, facts: JsonObject) -> ConversationMessage:
        envelope = get_object(facts.get("envelope"))
        errors = [get_object(error) for error in envelope.get("errors") or ()]
        problem = next(((str(error.get("code", "")), str(error.get("message", ""))) for error in errors), None)
        values = {name: value for name, value in envelope.items() if name not in ("ok", "tool_name") and value}
        return ConversationMessage(
            "tool",
            "Tool",
            notes=(escape_unprintable(step.tool_name or "(no name)"),),
            key=f"{step.ordinal}.result",
            ok=bool(step.ok),
            word="ok" if step.ok else "failed" if facts.get("executed") else "refused",
            problem=("", "") if step.ok else problem or (step.error_code, step.error_message),
            result=render_plain(values) if values and step.ok else None,
            is_first_bad=self._is_first_bad(step),
        )

    def _build_failed_request(self, step: Step) -> ConversationMessage:
        attempt = (f"attempt {step.attempt}",) if step.attempt > 1 else ()
        return ConversationMessage(
            "failed",
            f"{step.status or 'No'} answer",
            notes=(f"turn {step.turn + 1}", *attempt),
            key=f"{step.ordinal}.response",
            ok=False,
            problem=(step.error_code, step.error_message),
            is_first_bad=self._is_first_bad(step),
        )

    def _is_first_bad(self, step: Step) -> bool:
        return self.trial.outcome != Trial.Outcome.PASS and step.ordinal == self.trial.first_bad_ordinal


def _describe_status(compared: ComparedCall | None) -> str:
    """Return the result of a comparison in words; empty if the call was compared with nothing."""
    return "" if compared is None or compared.status is CallStatus.NOT_COMPARED else compared.status.value


def _list_tool_steps(steps: Sequence[Step]) -> list[Step]:
    """Return the tool steps before the next exchange."""
    return list(takewhile(lambda step: step.kind == Step.Kind.TOOL, steps))


def _list_notes(step: Step) -> Iterator[str]:
    yield f"turn {step.turn + 1}"
    yield f"{step.duration_ms / 1000:.1f} s"
    if step.output_tokens is not None:
        yield f"{step.output_tokens:,} tokens"
    if step.attempt > 1:
        yield f"attempt {step.attempt}"
