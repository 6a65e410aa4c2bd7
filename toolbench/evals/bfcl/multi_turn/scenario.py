"""The scenario of a conversation of BFCL, which is judged by BFCL's rules.

Its tools are the methods of BFCL's classes.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import ANSWERED_ENDS, EndReason, LoopResult, ToolResult
from toolbench.engine.loop.run_state import FurtherMessage
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.golden_answers import BfclCall
from toolbench.evals.bfcl.multi_turn.call_runner import run_calls
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase, parse_golden_turns
from toolbench.evals.bfcl.multi_turn.rules import NO_CALL_MISTAKE, RESULT_MISTAKE, TurnMistake, find_mistake
from toolbench.evals.bfcl.scenario import BFCL_GROUP
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.judging import verdict as judging
from toolbench.evals.judging.diagnosis import Problem, find_last_turn, locate_problem
from toolbench.evals.record_counts import CALLS_PATH, list_error_codes, read_tool_name
from toolbench.evals.types import DRAWN, Check, Instance, Verdict, Workspace
from toolbench.evals.user_cases.definition import build_definition

MULTI_TURN_RULE = (
    "After each of the user's messages, the state is the one after BFCL's own calls, and each result of these calls "
    "has occurred; other calls do not matter."
)
MAX_ANSWERS_PER_MESSAGE = 21  # BFCL ends a message after the 21st answer with calls
NO_RETURN_ERROR_CODE = "INTERNAL_ERROR"  # of a call without a result, because the process of the classes failed
# BFCL's rules may pass a run with failed calls or without calls.
GOOD_ENDS = ANSWERED_ENDS | {EndReason.TOOL_ERROR, EndReason.NO_TOOL_CALLS}


@dataclass(eq=False, slots=True)
class MultiTurnScenario:
    """The scenario of a conversation of BFCL.

    Each message is sent after the previous one is answered. The classes keep their state between messages.
    """

    slug: str
    version: int
    title: str
    case: MultiTurnCase
    public: bool = True
    group: str = BFCL_GROUP
    intent: str = "A public conversation of the Berkeley Function Calling Leaderboard."
    control: bool = False
    methods: tuple[str, ...] = METHODS
    min_requests: int = field(init=False)
    rule: str = field(default=MULTI_TURN_RULE, init=False)

    def __post_init__(self) -> None:
        self.min_requests = sum(2 if answers else 1 for answers in self.case.answers)

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance, whose task is the same for every seed."""
        first, *others = self.case.messages
        further = (
            FurtherMessage(text, _build_definitions(self.case.build_added_tools(message_index)))
            for message_index, text in enumerate(others, 1)
        )
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system="",
            user_text=first,
            tools=_build_definitions(self.case.tools),
            layer=_build_layer(self.case),
            further=tuple(further),
        )

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return only whether a call is needed: different calls may lead to the same state, so none is expected."""
        return ExpectedCalls(any(self.case.answers))

    def open(self, instance: Instance) -> Workspace:
        """Return a workspace with new instances of the case's classes."""
        return ClassesWorkspace(self.case)

    def judge(self, instance: Instance, loop_result: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict by BFCL's rules."""
        mistake = (
            find_mistake(self.case, group_calls_by_message(loop_result))
            if loop_result.turns and loop_result.end in GOOD_ENDS
            else None
        )
        checked = judging.CheckedResult(
            instance=instance,
            loop_result=loop_result,
            rule=MULTI_TURN_RULE,
            checks=tuple(_iter_checks(self.case, loop_result, mistake)),
            case_study_checks=None,
            fallback_problem=_find_problem(loop_result, mistake),
            good_ends=GOOD_ENDS,
        )
        verdict = judging.judge(checked)
        has_difference = mistake is not None and mistake.kind != NO_CALL_MISTAKE and verdict.outcome == "fail"
        return _replace_problem(verdict, checked.fallback_problem) if has_difference else verdict


class ClassesWorkspace:
    """The workspace of one execution, which runs each call on BFCL's classes after all earlier calls."""

    def __init__(self, case: MultiTurnCase) -> None:
        self._case = case
        self._calls: list[BfclCall] = []

    def call(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Return the result of the method: a JSON object, or {"value": text} for any other result.

        A call that has no result because the process failed is not repeated before later calls.

        Raises:
            NotInstalledError: BFCL is not installed.
            CallRunnerError: BFCL's classes did not answer or failed.
            ToolArgumentError: There is no such method, or it raised an exception; the message says which.
        """
        (turn,) = run_calls(self._case, [[*self._calls, (name, arguments)]], include_states=False)
        self._calls.append((name, arguments))
        if turn.failed[-1]:
            raise ToolArgumentError(turn.results[-1])
        return _parse_result(turn.results[-1])

    def snapshot(self) -> JsonObject:
        """Return {"called": calls}: the calls so far that gave a result or an exception, in order."""
        return {"called": [{"name": name, "arguments": arguments} for name, arguments in self._calls]}


def group_calls_by_message(loop_result: LoopResult) -> tuple[tuple[BfclCall, ...], ...]:
    """Return the calls that BFCL's classes ran, for each message that was sent."""
    groups = groupby(loop_result.turns, lambda record: record.request.message_index)
    return tuple(
        tuple(
            (read_tool_name(result), result.arguments or {})
            for record in records
            for result in record.results
            if _has_result(result)
        )
        for _, records in groups
    )


def _has_result(result: ToolResult) -> bool:
    """Return whether BFCL's classes ran the call and returned a result or an exception."""
    return result.was_executed and NO_RETURN_ERROR_CODE not in list_error_codes(result)


def _build_definitions(tools: Sequence[JsonObject]) -> tuple[ToolDefinition, ...]:
    return tuple(build_definition(tool) for tool in tools)


def _build_layer(case: MultiTurnCase) -> JsonObject:
    """Return the policy patch; arguments are not validated if BFCL's own calls violate its schemas."""
    layer: JsonObject = {"max_turns": MAX_ANSWERS_PER_MESSAGE, "request_overrides": {"parallel_tool_calls": True}}
    tools = {tool.name: tool for tool in _build_definitions((*case.tools, *_iter_later_tools(case)))}
    golden_calls = (call for turn in parse_golden_turns(case) for call in turn)
    has_violation = any(list_schema_errors(tools[name], arguments) for name, arguments in golden_calls)
    return {**layer, "validate_arguments": False} if has_violation else layer


def _iter_later_tools(case: MultiTurnCase) -> Iterator[JsonObject]:
    for message_index in case.later:
        yield from case.build_added_tools(int(message_index))


def _iter_checks(case: MultiTurnCase, loop_result: LoopResult, mistake: TurnMistake | None) -> Iterator[Check]:
    """Yield one check for each message up to the first with a mistake; one failed check if the run ended early."""
    if loop_result.end not in GOOD_ENDS or not loop_result.turns:
        yield Check("the conversation is complete", False)
        return
    for number in range(len(case.messages) if mistake is None else mistake.turn + 1):
        detail = mistake.message if mistake and mistake.turn == number else ""
        yield Check(f"message {number + 1}: state and results", not detail, detail)


def _find_problem(loop_result: LoopResult, mistake: TurnMistake | None) -> Problem:
    """Return the problem of a failed run.

    Its location is the last turn after the message of the mistake, or the last turn of the run without such a turn.
    """
    if mistake is None:
        return Problem(
            "wrong_state",
            locate_problem(find_last_turn(loop_result), path=CALLS_PATH, sentence="the conversation ended too early."),
        )
    turns = [record.turn for record in loop_result.turns if record.request.message_index == mistake.turn]
    is_call_missing = mistake.kind in (NO_CALL_MISTAKE, RESULT_MISTAKE)
    sentence = f"after the user's message {mistake.turn + 1}: {mistake.message}."
    return Problem(
        "missing_call" if is_call_missing else "wrong_state",
        locate_problem(turns[-1] if turns else find_last_turn(loop_result), path=CALLS_PATH, sentence=sentence),
    )


def _replace_problem(verdict: Verdict, turn_problem: Problem) -> Verdict:
    """Return the verdict with a turn's mistake as its problem.

    The problem of the given verdict may be a failed call, which does not matter by BFCL's rules.
    """
    return replace(
        verdict,
        failure_class=turn_problem.failure_class,
        sentence=turn_problem.location.sentence,
        first_bad=turn_problem.location,
    )


def _parse_result(text: str) -> object:
    """Return the parsed text if it is a JSON object without the member `ok`; else {"value": text}.

    An object with `ok` would be read as a result envelope.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {"value": text}
    return value if isinstance(value, dict) and "ok" not in value else {"value": text}


def _refuse_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")
