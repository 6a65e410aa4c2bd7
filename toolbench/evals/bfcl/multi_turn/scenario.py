"""A conversation of BFCL, tried and judged like any scenario: its tools are BFCL's classes, its judge BFCL's rules."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import ANSWERS, End, Ended, ToolResult
from toolbench.engine.loop.saying import FurtherMessage
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import METHODS
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import schema_errors
from toolbench.evals.bfcl.golden_answers import Call
from toolbench.evals.bfcl.multi_turn.call_runner import play
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase, golden_turns
from toolbench.evals.bfcl.multi_turn.rules import NO_CALL, RESULT, Mistake, mistake
from toolbench.evals.bfcl.scenario import GROUP
from toolbench.evals.expected_calls import Due
from toolbench.evals.judging import verdict as judging
from toolbench.evals.judging.diagnosis import Problem, at, last_turn
from toolbench.evals.record_counts import CALLS, error_codes
from toolbench.evals.types import DRAWN, Check, Instance, Verdict, Workspace
from toolbench.evals.user_cases.definition import definition_of

RULE = (
    "After each of the user's messages the state is the one that BFCL's own calls lead to, and each result of theirs "
    "was given; calls beside them do not matter."
)
ANSWERS_PER_MESSAGE = 21  # BFCL gives up on a message after the 21st answer that calls
NEVER_CAME_BACK = "INTERNAL_ERROR"
ENDS = ANSWERS | {End.TOOL_ERROR, End.NO_TOOL_CALLS}  # by BFCL's rules a tool that fails to the end is no failure


@dataclass(eq=False, slots=True)
class MultiTurnScenario:
    """Each of the user's messages is said once the one before it is answered; the classes keep their state."""

    slug: str
    version: int
    title: str
    case: MultiTurnCase
    public: bool = True
    group: str = GROUP
    intent: str = "A public conversation of the Berkeley Function Calling Leaderboard."
    control: bool = False
    methods: tuple[str, ...] = METHODS
    straight_requests: int = field(init=False)
    rule: str = field(default=RULE, init=False)

    def __post_init__(self) -> None:
        self.straight_requests = sum(2 if answers else 1 for answers in self.case.answers)

    def draw(self, seed: int, *, kind: str = DRAWN) -> Instance:
        first, *others = self.case.messages
        further = (
            FurtherMessage(text, _definitions(self.case.tools_with(number))) for number, text in enumerate(others, 1)
        )
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system="",
            user_text=first,
            tools=_definitions(self.case.tools),
            layer=_layer(self.case),
            further=tuple(further),
        )

    def due(self, instance: Instance) -> Due:
        """Other calls may lead to the same state: which ones are due is not known."""
        return Due(any(self.case.answers))

    def open(self, instance: Instance) -> Workspace:
        return ClassesWorkspace(self.case)

    def judge(self, instance: Instance, ended: Ended, workspace: Workspace) -> Verdict:
        wrong = mistake(self.case, calls_by_message(ended)) if ended.turns and ended.end in ENDS else None
        case = judging.Case(
            instance=instance,
            ended=ended,
            rule=RULE,
            checks=tuple(_checks(self.case, ended, wrong)),
            parity_checks=None,
            otherwise=_problem(ended, wrong),
            good_ends=ENDS,
        )
        verdict = judging.judge(case)
        differs = wrong is not None and wrong.kind != NO_CALL and verdict.outcome == "fail"
        return _saying(verdict, case.otherwise) if differs else verdict


class ClassesWorkspace:
    """BFCL's classes as one execution's world. Each call is played after all that came before it."""

    def __init__(self, case: MultiTurnCase) -> None:
        self._case = case
        self._calls: list[Call] = []

    def call(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """What the class gave back; what it raised is the model's to read. A call that never comes back is left out
        of what follows."""
        (played,) = play(self._case, [[*self._calls, (name, arguments)]], states=False)
        self._calls.append((name, arguments))
        if played.failed[-1]:
            raise ToolArgumentError(played.results[-1])
        return _value(played.results[-1])

    def snapshot(self) -> JsonObject:
        return {"called": [{"name": name, "arguments": arguments} for name, arguments in self._calls]}


def calls_by_message(ended: Ended) -> tuple[tuple[Call, ...], ...]:
    """The calls that BFCL's classes were given, for each message that the user came to say."""
    groups = groupby(ended.turns, lambda record: record.request.message)
    return tuple(
        tuple((_name(one), one.arguments or {}) for record in records for one in record.results if _was_played(one))
        for _, records in groups
    )


def _was_played(result: ToolResult) -> bool:
    return result.executed and NEVER_CAME_BACK not in error_codes(result)


def _name(result: ToolResult) -> str:
    return result.envelope.tool_name or result.call.name


def _definitions(tools: Sequence[JsonObject]) -> tuple[ToolDefinition, ...]:
    return tuple(definition_of(tool) for tool in tools)


def _layer(case: MultiTurnCase) -> JsonObject:
    """As BFCL asks. Where its own calls break its own schemas, no call is refused for that."""
    layer: JsonObject = {"max_turns": ANSWERS_PER_MESSAGE, "request_overrides": {"parallel_tool_calls": True}}
    tools = {tool.name: tool for tool in _definitions((*case.tools, *_later(case)))}
    broken = any(schema_errors(tools[name], given) for turn in golden_turns(case) for name, given in turn)
    return {**layer, "validate_arguments": False} if broken else layer


def _later(case: MultiTurnCase) -> Iterator[JsonObject]:
    for number in case.later:
        yield from case.tools_with(int(number))


def _checks(case: MultiTurnCase, ended: Ended, wrong: Mistake | None) -> Iterator[Check]:
    """One for each message up to the first that differs, in BFCL's words."""
    if ended.end not in ENDS or not ended.turns:
        yield Check("the conversation comes to its end", False)
        return
    reached = len(case.messages) if wrong is None else wrong.turn + 1
    for number in range(reached):
        differs = wrong is not None and wrong.turn == number
        yield Check(f"message {number + 1}: state and results", not differs, wrong.says if wrong and differs else "")


def _problem(ended: Ended, wrong: Mistake | None) -> Problem:
    """At the last turn of the message."""
    if wrong is None:
        return Problem(
            "wrong_state", at(last_turn(ended), path=CALLS, what="the conversation did not come to its end.")
        )
    of_message = [record.turn for record in ended.turns if record.request.message == wrong.turn]
    where = {NO_CALL: "missing_call", RESULT: "missing_call"}.get(wrong.kind, "wrong_state")
    what = f"after the user's message {wrong.turn + 1}: {wrong.says}."
    return Problem(where, at(of_message[-1] if of_message else last_turn(ended), path=CALLS, what=what))


def _saying(verdict: Verdict, own: Problem) -> Verdict:
    """Failed calls on the way are no failure by BFCL's rules: what differs first is what went wrong."""
    return replace(verdict, failure_class=own.failure_class, sentence=own.bad.sentence, first_bad=own.bad)


def _value(text: str) -> object:
    """An object as an object; any other text as it is."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {"value": text}
    return value if isinstance(value, dict) and "ok" not in value else {"value": text}


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")
