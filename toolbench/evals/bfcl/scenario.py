"""The scenario of a single-turn case of BFCL, in which one answer is judged by BFCL's AST rules."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.json_paths import build_member_path
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.tools.definitions import StoredToolDefinition, ToolDefinition
from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.ast_rules import AnswerMistake, find_call_mistake, find_mistake, iter_argument_mistakes
from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.golden_answers import BfclCall, build_golden_arguments
from toolbench.evals.expected_calls import ExpectedCalls, ExpectedToolCall
from toolbench.evals.judging import verdict
from toolbench.evals.judging.diagnosis import NO_TOOL_CALLS_PROBLEM, Problem, locate_problem
from toolbench.evals.record_counts import CALLS_PATH, iter_calls
from toolbench.evals.types import DRAWN, Check, Instance, Verdict, Workspace
from toolbench.evals.user_cases.definition import build_definition
from toolbench.evals.user_cases.simulated_tools import SimulatedTools

BFCL_GROUP = "bfcl"
AST_RULE = "The first answer makes the calls that BFCL accepts, by its AST rules; the run ends after it."
_INVALID_NAME_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(eq=False, slots=True)
class BfclScenario:
    """The scenario of a single-turn case of BFCL.

    Function names are sent with `_` for each character that endpoints may refuse, and truncated to 64 characters. BFCL,
    too, replaces dots by `_`.
    """

    slug: str
    version: int
    title: str
    case: BfclCase
    public: bool = True
    group: str = BFCL_GROUP
    intent: str = "A public case of the Berkeley Function Calling Leaderboard."
    control: bool = False
    methods: tuple[str, ...] = METHODS
    min_requests: int = 1

    @property
    def rule(self) -> str:
        """Return the rule of a pass as a sentence."""
        return AST_RULE

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance, whose task is the same for every seed."""
        question = list(self.case.question)
        system = str(question.pop(0)["content"]) if question[0].get("role") == "system" else ""
        layer: JsonObject = {"max_turns": 1}
        if "parallel" in self.case.category:
            layer["request_overrides"] = {"parallel_tool_calls": True}
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=system,
            user_text=str(question[-1]["content"]),
            tools=self.definitions,
            history=tuple(question[:-1]),
            layer=layer,
        )

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the tool definitions, with names that every endpoint accepts."""
        tools = (build_definition(tool) for tool in self.case.tools)
        return tuple(
            StoredToolDefinition(sanitise_name(tool.name), tool.description, tool.parameters) for tool in tools
        )

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the calls that BFCL accepts."""
        functions = {str(function["name"]): function for function in self.case.functions}
        accepted_calls = ((name, accepted) for answer in self.case.answers for name, accepted in answer.items())
        calls = (
            ExpectedToolCall(
                sanitise_name(name),
                partial(_is_accepted, functions[name], accepted),
                partial(_list_wrong_paths, functions[name], accepted),
                build_golden_arguments(functions[name], accepted),
            )
            for name, accepted in accepted_calls
            if name in functions
        )
        return ExpectedCalls(bool(self.case.answers), tuple(calls), accepts_refused=True)

    def open(self, instance: Instance) -> Workspace:
        """Return a workspace whose tools return their arguments."""
        return SimulatedTools({}, {})

    def judge(self, instance: Instance, loop_result: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict by BFCL's rules, on the first answer."""
        names_by_sent_name = {
            sanitise_name(function["name"]): str(function["name"]) for function in self.case.functions
        }
        made = [call for call in iter_calls(loop_result) if call.turn == 0]
        calls = [(names_by_sent_name.get(call.tool, call.tool), call.result.arguments or {}) for call in made]
        unreadable_index = next((index for index, call in enumerate(made) if call.result.parse_status != "ok"), None)
        mistake = (
            find_mistake(self.case.category, self.case.functions, self.case.answers, calls)
            if unreadable_index is None
            else AnswerMistake("the arguments cannot be read or are too large", call=unreadable_index)
        )
        checked = verdict.CheckedResult(
            instance=instance,
            loop_result=loop_result,
            rule=AST_RULE,
            checks=tuple(_iter_checks(self.case, calls, mistake)),
            case_study_checks=None,
            fallback_problem=_find_problem(mistake, len(calls)),
            good_ends=frozenset({EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED}),
        )
        return verdict.judge(checked)


def sanitise_name(name: str) -> str:
    """Return a function's name with `_` for each character that endpoints may refuse, truncated to 64 characters."""
    return _INVALID_NAME_CHARACTERS.sub("_", name)[:64]


def _is_accepted(function: JsonObject, accepted: JsonObject, arguments: JsonObject) -> bool:
    return find_call_mistake(function, accepted, (str(function["name"]), arguments)) is None


def _list_wrong_paths(function: JsonObject, accepted: JsonObject, arguments: JsonObject) -> tuple[str, ...]:
    mistakes = iter_argument_mistakes(function, accepted, arguments)
    return tuple(dict.fromkeys(build_member_path("$", name) for name, message in mistakes if message))


def _iter_checks(case: BfclCase, calls: list[BfclCall], mistake: AnswerMistake | None) -> Iterator[Check]:
    """Yield the check by BFCL's rules, then one for each given or missing argument.

    Arguments are checked only if one call is expected and one call of the expected function was made.
    """
    detail = f"{mistake.argument} {mistake.message}".strip() if mistake else ""
    yield Check("accepted by BFCL's rules", mistake is None, detail)
    if len(calls) == 1 == len(case.answers):
        (name,) = case.answers[0]
        function = next((function for function in case.functions if function["name"] == name == calls[0][0]), None)
        if function is not None:
            messages = dict(iter_argument_mistakes(function, case.answers[0][name], calls[0][1]))
            yield from (Check(f"{name} $.{argument}", not message, message) for argument, message in messages.items())


def _find_problem(mistake: AnswerMistake | None, call_count: int) -> Problem:
    if mistake is None or not call_count:
        return NO_TOOL_CALLS_PROBLEM
    path = f"$.{mistake.argument}" if mistake.argument else CALLS_PATH
    call = mistake.call if mistake.call is not None else 0 if mistake.argument else None
    sentence = f"{f'{path} ' if mistake.argument else ''}{mistake.message}."
    return Problem("wrong_arguments", locate_problem(0, call=call, path=path, sentence=sentence))
