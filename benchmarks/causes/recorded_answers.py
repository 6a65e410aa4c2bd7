"""The recorded answers of the tests: does the table name what a reader saw who did not know how it is found?

Each answer is the whole of a trial with one turn in which a call was due. `build_sheet` is what the reader is given;
the labels are in data/recorded_causes.json, by the answer's name, which is a hash of what the reader saw."""

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
    """One answer as it came over the wire."""

    status: int
    body: str
    tools: tuple[JsonObject, ...]
    most_argument_bytes: int | None = None
    messages: tuple[JsonObject, ...] = ()  # what was sent, where an earlier turn of it may have been refused

    def shown(self) -> JsonObject:
        """Return what the reader sees."""
        limit = {} if self.most_argument_bytes is None else {"most_argument_bytes": self.most_argument_bytes}
        sent = {"messages": list(self.messages)} if self.messages else {}
        return {"status": self.status, "body": self.body, "tools": list(self.tools), **limit, **sent}

    @property
    def name(self) -> str:
        return hashlib.sha256(json.dumps(self.shown(), sort_keys=True).encode()).hexdigest()[:10]


@cache
def list_recorded_answers() -> tuple[RecordedAnswer, ...]:
    """Return the texts of families, the odd arguments and the exchanges with a local model, each once."""
    found = (*_iter_text_answers(), *_iter_argument_answers(), *_iter_exchange_answers())
    return tuple({item.name: item for item in found}.values())


def build_sheet() -> JsonObject:
    """Return what a reader needs to label every answer, in the order of their names."""
    causes = [{"code": row.code, "says": row.sentence} for row in load_causes().values()]
    sets: dict[str, str] = {}
    answers = []
    for answer in sorted(list_recorded_answers(), key=lambda one: one.name):
        offered = sets.setdefault(json.dumps(answer.tools), f"set {len(sets) + 1}")
        answers.append({"name": answer.name, **answer.shown(), "tools": offered})
    tools = {name: json.loads(offered) for offered, name in sets.items()}
    return {"task": READER_TASK, "causes": causes, "tools": tools, "answers": answers}


def read_labels() -> dict[str, str]:
    """Return the reader's labels by the name of the answer."""
    found: dict[str, str] = json.loads(LABELS_FILE.read_text(encoding="utf-8"))["labels"]
    return found


def find_table_cause(answer: RecordedAnswer) -> str:
    """Return the cause that the table gives an answer, or NONE."""
    ended = _run_answer(answer)
    steps = tuple(_iter_steps(ended))
    if any(isinstance(step, ToolRun) and step.ok for step in steps):
        return NO_CAUSE
    ending = TrialEnd("fail", ended.end, "", call_expected=True, needs=TaskNeeds(tuple(_iter_needed_tools(answer))))
    cause = find_cause(steps, find_occurrences(steps), ending)
    return cause.code if cause else NO_CAUSE


def iter_report_lines(given: dict[str, str]) -> Iterator[str]:
    """Yield agreement with the labels as lines, and every answer on which table and reader differ."""
    answers = list_recorded_answers()
    labelled = [answer for answer in answers if answer.name in given]
    differing = [(item, find_table_cause(item)) for item in labelled if given[item.name] != find_table_cause(item)]
    yield f"{len(answers)} recorded answers, {len(labelled)} labelled."
    if labelled:
        agreed = len(labelled) - len(differing)
        yield f"{agreed} of them ({agreed / len(labelled):.2%}) get the cause that the reader named."
    yield from (f"{answer.name}: no reader has labelled it." for answer in answers if answer.name not in given)
    for one, cause in differing:
        yield f"{one.name}: table {cause}, reader {given[one.name]}: {one.body[:160]}"


def _iter_needed_tools(answer: RecordedAnswer) -> Iterator[str]:
    """Yield every tool, so that a call of any of them is one that was due."""
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
        told = json.loads(path.read_text(encoding="utf-8"))
        tools = tuple(told["request"].get("tools") or ())
        if tools and told["path"].endswith("/chat/completions"):
            yield RecordedAnswer(told["status"], told["body"], tools, messages=tuple(_refused_history(told)))


def _refused_history(told: JsonObject) -> Iterator[JsonObject]:
    """Yield the messages of a request that was refused and held an earlier turn: that turn may be the reason."""
    messages = told["request"]["messages"]
    if told["status"] >= HTTPStatus.BAD_REQUEST and any(message["role"] == "assistant" for message in messages):
        yield from messages


def _render_body(message: JsonObject, finish: str) -> str:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"choices": [choice]}, ensure_ascii=False)


def _run_answer(answer: RecordedAnswer) -> LoopResult:
    """Drive the loop through the one answer; every call that may run succeeds."""
    patch: JsonObject = {"max_turns": 1}
    if answer.most_argument_bytes is not None:
        patch["max_tool_args_bytes"] = answer.most_argument_bytes
    policy = resolve_policy([*build_layers("raw"), ("recorded", patch)]).policy
    plan = LoopPlan("recorded", policy, "", "Call a tool.", tools=ToolRegistry(tuple(map(_build_tool, answer.tools))))
    return _drive_loop(run_loop(plan, _ignore_event), answer)


def _drive_loop(loop: Generator[Ask | Execute, LoopInput, LoopResult], answer: RecordedAnswer) -> LoopResult:
    wanted = next(loop)
    try:
        while True:
            if isinstance(wanted, Ask):
                wanted = loop.send(_read_answer(wanted, answer))
            else:
                wanted = loop.send(tuple(Outcome({"done": True}) for _ in wanted.calls))
    except StopIteration as stopped:
        ended: LoopResult = stopped.value
        return ended


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
