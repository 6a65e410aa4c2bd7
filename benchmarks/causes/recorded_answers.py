"""Third measurement: do recorded answers of the tests get the cause that a reader gave them?

The reader did not know the rules by which causes are found. Each answer is that of a trial with one turn, which needed
a call. `build_sheet` returns what the reader gets. The labels are in `data/recorded_causes.json`, by the name of the
answer, which is a hash of what the reader saw.
"""

import hashlib
import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import Ask, Event, Execute, FailedExchange, LoopInput, LoopResult, Outcome
from toolbench.engine.loop.run import LoopPlan, run_loop
from toolbench.engine.policy.presets import build_layers
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject, Turn
from toolbench.evals.causes.classify import TrialEnd, find_occurrences
from toolbench.evals.causes.decisive import find_cause
from toolbench.evals.causes.required_calls import TaskNeeds
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep
from toolbench.evals.causes.table import load_causes
from toolbench.providers.http.error_codes import classify_response, classify_unreadable

TESTS_FOLDER = Path(__file__).parents[2] / "tests"
LABELS_FILE = Path(__file__).parents[1] / "data" / "recorded_causes.json"
NO_CAUSE = "none"  # the label of an answer whose call runs
RUN_TOOL: JsonObject = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}
READER_TASK = (
    "Each answer is all that a model said when it was offered the tools and had to call one of them. The client takes "
    "calls from tool_calls only. It reads arguments that are an object, or a text that holds one, also in a code fence "
    "or encoded twice; blank or missing arguments are an empty object. Arguments over `most_argument_bytes` (UTF-8, "
    "without white space or a fence around them) are refused before they are read. A code fence has line breaks around "
    "its text. A call in the text counts only if it names an offered tool; a text that holds none, or names only other "
    "tools, is words. Of several calls in a text one that can be read is enough to call the text readable. Judge by "
    "the answer alone, not by its counts of tokens. Where `messages` are shown, the client had sent them, and the "
    "endpoint may have refused an earlier turn of them. Say for each answer which cause it failed of: one code "
    f"of `causes`, or `{NO_CAUSE}` where a call of an offered tool runs. Where several fit, name the one that explains "
    "the others."
)


@dataclass(frozen=True)
class RecordedAnswer:
    """One answer as it was received.

    Attributes:
        most_argument_bytes: limit of the arguments, in bytes; None for the default of the policy.
        messages: messages of the request if the endpoint may have refused an earlier turn of them; else empty.
    """

    status: int
    body: str
    tools: tuple[JsonObject, ...]
    most_argument_bytes: int | None = None
    messages: tuple[JsonObject, ...] = ()

    def to_json(self) -> JsonObject:
        """Return what the reader sees."""
        limit = {} if self.most_argument_bytes is None else {"most_argument_bytes": self.most_argument_bytes}
        sent = {"messages": list(self.messages)} if self.messages else {}
        return {"status": self.status, "body": self.body, "tools": list(self.tools), **limit, **sent}

    @property
    def name(self) -> str:
        """Ten hexadecimal digits of the hash of what the reader sees."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:10]


@cache
def list_recorded_answers() -> tuple[RecordedAnswer, ...]:
    """Return texts of model families, unusual arguments and exchanges with a local model, each once."""
    found = (*_iter_text_answers(), *_iter_argument_answers(), *_iter_exchange_answers())
    return tuple({item.name: item for item in found}.values())


def build_sheet() -> JsonObject:
    """Return what a reader needs to label every answer, in the order of their names."""
    causes = [{"code": row.code, "says": row.sentence} for row in load_causes().values()]
    sets: dict[str, str] = {}
    answers = []
    for answer in sorted(list_recorded_answers(), key=lambda answer: answer.name):
        offered = sets.setdefault(json.dumps(answer.tools), f"set {len(sets) + 1}")
        answers.append({"name": answer.name, **answer.to_json(), "tools": offered})
    tools = {name: json.loads(offered) for offered, name in sets.items()}
    return {"task": READER_TASK, "causes": causes, "tools": tools, "answers": answers}


def read_labels() -> dict[str, str]:
    """Return the reader's labels by the name of the answer."""
    found: dict[str, str] = json.loads(LABELS_FILE.read_text(encoding="utf-8"))["labels"]
    return found


def find_table_cause(answer: RecordedAnswer) -> str:
    """Return the code of the cause that the rules find for an answer, or NO_CAUSE."""
    ended = _run_answer(answer)
    steps = tuple(_iter_steps(ended))
    if any(isinstance(step, ToolRun) and step.ok for step in steps):
        return NO_CAUSE
    ending = TrialEnd("fail", ended.end, "", call_expected=True, needs=TaskNeeds(tuple(_iter_needed_tools(answer))))
    cause = find_cause(steps, find_occurrences(steps), ending)
    return cause.code if cause else NO_CAUSE


def iter_report_lines(labels: dict[str, str]) -> Iterator[str]:
    """Yield lines: the agreement with the labels, and every answer without a label or with another one."""
    answers = list_recorded_answers()
    labelled = [answer for answer in answers if answer.name in labels]
    differing = [(item, find_table_cause(item)) for item in labelled if labels[item.name] != find_table_cause(item)]
    yield f"{len(answers)} recorded answers, {len(labelled)} labelled."
    if labelled:
        agreed = len(labelled) - len(differing)
        yield f"{agreed} of them ({agreed / len(labelled):.2%}) get the cause that the reader named."
    yield from (f"{answer.name}: no reader has labelled it." for answer in answers if answer.name not in labels)
    for answer, cause in differing:
        yield f"{answer.name}: table {cause}, reader {labels[answer.name]}: {answer.body[:160]}"


def _iter_needed_tools(answer: RecordedAnswer) -> Iterator[str]:
    """Yield the name of every tool, so that a call of any of them is an expected call."""
    yield from (str(tool["function"]["name"]) for tool in answer.tools)


def _iter_text_answers() -> Iterator[RecordedAnswer]:
    data = TESTS_FOLDER / "engine" / "formats" / "data"
    tools = tuple(json.loads((data / "tools.json").read_text(encoding="utf-8")))
    for name in ("golden_families", "golden"):
        for cases in json.loads((data / f"{name}.json").read_text(encoding="utf-8")).values():
            yield from (RecordedAnswer(200, _render_body({"content": case["text"]}, "stop"), tools) for case in cases)


def _iter_argument_answers() -> Iterator[RecordedAnswer]:
    cases = json.loads((TESTS_FOLDER / "engine" / "data" / "arguments.json").read_text(encoding="utf-8"))
    for case in cases:
        call = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": case["raw"]}}
        yield RecordedAnswer(
            200, _render_body({"content": None, "tool_calls": [call]}, "tool_calls"), (RUN_TOOL,), case["max"]
        )


def _iter_exchange_answers() -> Iterator[RecordedAnswer]:
    for path in sorted((TESTS_FOLDER / "providers" / "data" / "local").glob("*.json")):
        exchange = json.loads(path.read_text(encoding="utf-8"))
        tools = tuple(exchange["request"].get("tools") or ())
        if tools and exchange["path"].endswith("/chat/completions"):
            messages = tuple(_iter_refused_history(exchange))
            yield RecordedAnswer(exchange["status"], exchange["body"], tools, messages=messages)


def _iter_refused_history(exchange: JsonObject) -> Iterator[JsonObject]:
    """Yield the messages of a refused request with an earlier turn, since that turn may be the reason."""
    messages = exchange["request"]["messages"]
    if exchange["status"] >= HTTPStatus.BAD_REQUEST and any(message["role"] == "assistant" for message in messages):
        yield from messages


def _render_body(message: JsonObject, finish: str) -> str:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"choices": [choice]}, ensure_ascii=False)


def _run_answer(answer: RecordedAnswer) -> LoopResult:
    """Run the loop with this answer; every call that may run succeeds."""
    patch: JsonObject = {"max_turns": 1}
    if answer.most_argument_bytes is not None:
        patch["max_tool_args_bytes"] = answer.most_argument_bytes
    policy = resolve_policy([*build_layers("raw"), ("recorded", patch)]).policy
    plan = LoopPlan("recorded", policy, "", "Call a tool.", tools=ToolRegistry(tuple(map(_build_tool, answer.tools))))
    return _drive_loop(run_loop(plan, _ignore_event), answer)


def _drive_loop(loop: Generator[Ask | Execute, LoopInput, LoopResult], answer: RecordedAnswer) -> LoopResult:
    event = next(loop)
    try:
        while True:
            if isinstance(event, Ask):
                event = loop.send(_read_answer(event, answer))
            else:
                event = loop.send(tuple(Outcome({"done": True}) for _ in event.calls))
    except StopIteration as stopped:
        result: LoopResult = stopped.value
        return result


def _read_answer(ask: Ask, answer: RecordedAnswer) -> Turn | FailedExchange:
    body = answer.body.encode("utf-8", "surrogatepass")
    if error := classify_response(status=answer.status, headers={}, body=body):
        return FailedExchange(error)
    ask.decoder.feed(body)
    try:
        return ask.decoder.close()
    except MalformedAnswerError as error:
        return FailedExchange(classify_unreadable(answer.status, body, str(error)))


def _iter_steps(ended: LoopResult) -> Iterator[WireStep]:
    ordinal = 0
    for record in ended.turns:
        error = record.failure
        ordinal += 1
        refused = bool(error and error.tool_support)
        sent = record.request.has_tools
        yield ExchangeAttempt(ordinal, record.turn, sent, record.answer, error.code if error else "", refused)
        for result in record.results:
            ordinal += 1
            yield ToolRun(ordinal, record.turn, result)


def _build_tool(offered: JsonObject) -> ToolDefinition:
    function = offered["function"]
    return ToolDefinition(function["name"], function.get("description", ""), function.get("parameters") or {})


def _ignore_event(event: Event) -> None: ...
