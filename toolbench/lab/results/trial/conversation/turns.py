"""The conversation of a trial: messages, calls beside the expected ones, results and errors, in the order they came."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    render_got,
    render_plain,
)
from toolbench.lab.results.trial.conversation.request_messages import SentMessage, SentRequest, parse_sent_request
from toolbench.lab.scenarios.catalogue import load_scenario
from toolbench.lab.traces.code_view import escape_unprintable

MAX_TEXT_CHARS = 20_000  # of one message; the step has the rest
MAX_HEAD_CHARS = 700
MAX_HEAD_LINES = 8
ROLE_TITLES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool", "prompt": "Prompt"}
IMPORTED_SENTENCE = "The trial was imported from a log: its expected calls are not known here."
UNKNOWN_VERSION_SENTENCE = "Version {version} of {scenario} is not known here, so expected calls cannot be shown."
NOT_READ_SENTENCE = "The first request is too large to be shown here: open its step."

_CALL_MARKS = {CallStatus.AS_EXPECTED: "pass", CallStatus.NOT_COMPARED: "na"}


@dataclass(frozen=True, slots=True)
class MessageText:
    """A text: its beginning, and the whole if that is longer; `lines` counts those of the whole."""

    head: str
    whole: str = ""
    lines: int = 0


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """A call of an answer, compared with the expected one.

    Attributes:
        mark: pass, fail or na.
        word: how the call compares with the expected ones.
        expected: None if there is nothing to show beside the call.
        is_first_bad: True for the first problem of the trial.
    """

    tool: str
    mark: str
    word: str
    differences: tuple[ArgumentDifference, ...]
    got: ArgumentPane
    expected: ArgumentPane | None
    is_first_bad: bool


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One message of the conversation.

    Attributes:
        role: system, user, assistant, tool, prompt or failed; the last is a request without an answer.
        notes: short facts, such as the turn and its time.
        key: the row of the timeline that shows it in full; empty for messages of the first request.
        word: what became of a tool's call: ok, refused or failed.
        problem: a code and what happened, of an error or an answer that could not be read.
        result: what the tool returned.
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
    """The conversation of a trial.

    Attributes:
        note: why no expected calls are shown; empty if they are.
        missing: tool and arguments of each expected call that was not made; the arguments may be unknown.
    """

    turns: tuple[ConversationTurn, ...]
    note: str = ""
    missing: tuple[tuple[str, ArgumentPane | None], ...] = ()


def build_conversation(
    trial: Trial, version: int, steps: Sequence[Step], stored: Mapping[int, StoredBodies]
) -> TrialConversation:
    """Return the conversation of a trial. One query if its scenario is a case.

    The instance and with it the expected calls follow from the trial's seed; nothing of them is stored.

    Args:
        trial: the trial, with its run.
        version: scenario version of its current verdict.
        steps: steps of its current execution, in order.
        stored: their step details, and the request of the first exchange.
    """
    due, note = load_expected_calls(trial, version)
    tools = [step for step in steps if step.kind == Step.Kind.TOOL]
    made = [_build_made_call(step, _get_facts(step, stored)) for step in tools]
    compared = compare_calls(made, due) if due is not None else ComparedCalls((), (), note)
    by_step = dict(zip((step.pk for step in tools), compared.calls, strict=False))
    builder = _ConversationBuilder(trial, stored, by_step)
    turns = (*_build_first_messages(steps, stored), *builder.iter_turns(steps))
    missing = compared.missing if trial.state == Trial.State.DONE else ()
    return TrialConversation(
        turns,
        compared.note,
        tuple((call.tool, None if call.arguments is None else render_plain(call.arguments)) for call in missing),
    )


def load_expected_calls(trial: Trial, version: int) -> tuple[ExpectedCalls | None, str]:
    """Return the expected calls of the trial's instance, or None and the reason why they are not known."""
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
    errors = tuple(SchemaError(**error) for error in facts.get("schema_errors") or ())
    return MadeCall(step.tool_name, arguments if isinstance(arguments, dict) else None, bool(step.ok), errors)


def _build_first_messages(steps: Sequence[Step], stored: Mapping[int, StoredBodies]) -> Iterator[ConversationTurn]:
    """Yield the messages of the first request."""
    first = next((step for step in steps if step.kind == Step.Kind.EXCHANGE), None)
    if first is None:
        return
    body = stored.get(first.pk, StoredBodies()).request
    sent = parse_sent_request(body)
    key = f"{first.ordinal}.request"
    if not sent.messages and first.request_bytes > len(body):
        yield ConversationTurn("system", "System", text=MessageText(NOT_READ_SENTENCE), key=key)
    for place, message in enumerate(sent.messages):
        yield _build_sent_turn(message, key, sent if place == 0 else SentRequest())


def _build_sent_turn(message: SentMessage, key: str, sent: SentRequest) -> ConversationTurn:
    names = ", ".join(sent.tools)
    notes = (f"{len(sent.tools)} tool{'s' * (len(sent.tools) > 1)} offered: {names}",) if sent.tools else ()
    role = message.role if message.role in ROLE_TITLES else "user"
    return ConversationTurn(
        role,
        ROLE_TITLES.get(message.role, message.role),
        notes=notes,
        text=_build_text(message.text),
        sent_calls=tuple(escape_unprintable(call[:MAX_HEAD_CHARS]) for call in message.calls),
        key=key,
    )


def _build_text(text: str) -> MessageText | None:
    """Return the text; None if it is empty."""
    if not text.strip():
        return None
    shown = escape_unprintable(text[:MAX_TEXT_CHARS]) + (" …" if len(text) > MAX_TEXT_CHARS else "")
    lines = shown.splitlines()
    head = "\n".join(lines[:MAX_HEAD_LINES])[:MAX_HEAD_CHARS]
    return MessageText(head, shown if len(head) < len(shown.rstrip("\n")) else "", len(lines))


@dataclass(frozen=True, slots=True)
class _ConversationBuilder:
    trial: Trial
    stored: Mapping[int, StoredBodies]
    compared: Mapping[int, ComparedCall]

    def iter_turns(self, steps: Sequence[Step]) -> Iterator[ConversationTurn]:
        """Yield the messages of the steps in order."""
        for place, step in enumerate(steps):
            facts = _get_facts(step, self.stored)
            if step.kind == Step.Kind.TOOL:
                yield self._build_result(step, facts)
                continue
            if user_text := _build_text(str(facts.get("said") or "")):
                yield ConversationTurn("user", "User", text=user_text, key=f"{step.ordinal}.request")
            if step.ok:
                yield self._build_answer(step, facts, _list_tool_steps(steps[place + 1 :]))
            else:
                yield self._build_failed(step)

    def _build_answer(self, step: Step, facts: JsonObject, tool_steps: Sequence[Step]) -> ConversationTurn:
        calls = [get_object(call) for call in facts.get("calls") or ()]
        pairs = [(call, tool_steps[place] if place < len(tool_steps) else None) for place, call in enumerate(calls)]
        errors = facts.get("parse_errors") or ()
        unread = "; ".join(f"{error['error']}: {error['snippet']}" for error in errors)
        message = get_object(facts.get("message"))
        return ConversationTurn(
            "assistant",
            "Assistant",
            notes=tuple(_list_notes(step)),
            text=_build_text(str(facts.get("text") or "")),
            reasoning=_build_text(str(message.get("reasoning_content") or message.get("reasoning") or "")),
            calls=tuple(self._build_call(call, tool_step) for call, tool_step in pairs),
            key=f"{step.ordinal}.calls",
            problem=(str(facts.get("notice") or ""), escape_unprintable(unread[:MAX_HEAD_CHARS])),
            is_first_bad=self._is_first_bad(step),
        )

    def _build_call(self, call: JsonObject, step: Step | None) -> AnswerCall:
        compared = self.compared.get(step.pk) if step else None
        facts = _get_facts(step, self.stored) if step else {}
        arguments = facts.get("arguments")
        differences = compared.differences if compared else ()
        known = compared.expected.arguments if compared and compared.expected else None
        written = call.get("arguments")
        return AnswerCall(
            tool=escape_unprintable(str(call.get("name") or "(no name)")),
            mark=_CALL_MARKS.get(compared.status, "fail") if compared else "na",
            word=_describe_status(compared),
            differences=differences,
            got=render_got(arguments, differences) if isinstance(arguments, dict) else render_plain(written),
            expected=render_expected(known, differences) if known is not None and differences else None,
            is_first_bad=step is not None and self._is_first_bad(step),
        )

    def _build_result(self, step: Step, facts: JsonObject) -> ConversationTurn:
        envelope = get_object(facts.get("envelope"))
        errors = [get_object(error) for error in envelope.get("errors") or ()]
        problem = next(((str(error.get("code", "")), str(error.get("message", ""))) for error in errors), None)
        values = {name: value for name, value in envelope.items() if name not in ("ok", "tool_name") and value}
        return ConversationTurn(
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

    def _build_failed(self, step: Step) -> ConversationTurn:
        again = (f"attempt {step.attempt}",) if step.attempt > 1 else ()
        return ConversationTurn(
            "failed",
            f"{step.status or 'No'} answer",
            notes=(f"turn {step.turn + 1}", *again),
            key=f"{step.ordinal}.response",
            ok=False,
            problem=(step.error_code, step.error_message),
            is_first_bad=self._is_first_bad(step),
        )

    def _is_first_bad(self, step: Step) -> bool:
        return self.trial.outcome != Trial.Outcome.PASS and step.ordinal == self.trial.first_bad_ordinal


def _describe_status(compared: ComparedCall | None) -> str:
    """Return how a call compares with the expected ones, in words; empty if it is not compared."""
    if compared is None:
        return "not run"
    return "" if compared.status is CallStatus.NOT_COMPARED else compared.status.value


def _list_tool_steps(steps: Sequence[Step]) -> list[Step]:
    """Return the tool executions before the next exchange."""
    found: list[Step] = []
    for step in steps:
        if step.kind != Step.Kind.TOOL:
            break
        found.append(step)
    return found


def _list_notes(step: Step) -> Iterator[str]:
    yield f"turn {step.turn + 1}"
    yield f"{step.duration_ms / 1000:.1f} s"
    if step.output_tokens is not None:
        yield f"{step.output_tokens:,} tokens"
    if step.attempt > 1:
        yield f"attempt {step.attempt}"
