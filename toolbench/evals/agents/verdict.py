"""Judging the four agents: their checks, whether they are right, and the first wrong agent of a chain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.types import JsonObject
from toolbench.evals.agents import sql
from toolbench.evals.agents.checks import run_agent_checks
from toolbench.evals.agents.workspaces import list_columns, load_workspaces
from toolbench.evals.expected_calls import ExpectedCalls, ExpectedToolCall
from toolbench.evals.judging import verdict as judging
from toolbench.evals.judging.diagnosis import Problem, find_last_turn, locate_problem
from toolbench.evals.judging.failure_classes import classify_end
from toolbench.evals.judging.messages import render_short
from toolbench.evals.record_counts import CALLS_PATH, RecordedCall, has_calls, iter_calls
from toolbench.evals.types import Check, Instance, Verdict

AGENT_ORDER = ("intent", "table", "column", "sql")
TOOL_BY_AGENT = {
    "intent": "classify_intent",
    "table": "select_tables",
    "column": "prune_columns",
    "sql": "generate_sql",
}
FIELD_BY_AGENT = {
    "intent": "workspace_id",
    "table": "relevant_tables",
    "column": "relevant_columns",
    "sql": "sql_query",
}
AGENT_RULE = "The {agent} agent calls {tool} once; every check of it holds, and {right}."
CHAIN_RULE = "The four agents call in their order, one call each or mended; every check holds and each is right."
RIGHT_BY_AGENT = {
    "intent": "workspace_id is the one that can answer",
    "table": "relevant_tables are those that the question needs, and no others",
    "column": "every needed column is among the relevant ones and none among the others",
    "sql": "the query gives the right value on the stored rows and tables_used are the tables it reads",
}


@dataclass(frozen=True, slots=True)
class AgentStep:
    """One agent's part of a trial: its last call (None if it never called) and the checks of that call."""

    agent: str
    call: RecordedCall | None
    checks: tuple[Check, ...]

    @property
    def failed_check(self) -> Check | None:
        """Return the first check that fails; None if all hold."""
        return next((check for check in self.checks if not check.ok), None)

    def build_problem(self, ended: LoopResult) -> Problem:
        """Return the problem of this agent's call, or of the missing call."""
        if self.call is None:
            sentence = f"the run ends here; the {self.agent} agent never called {TOOL_BY_AGENT[self.agent]}."
            return Problem("missing_call", locate_problem(find_last_turn(ended), path=CALLS_PATH, sentence=sentence))
        wrong = self.failed_check or self.checks[0]
        path = wrong.detail if wrong.detail.startswith("$.") else f"$.{FIELD_BY_AGENT[self.agent]}"
        why = f"; {wrong.detail}" if wrong.detail and wrong.detail != path else ""
        sentence = f"the {self.agent} agent is wrong at {path}: not so that {_describe_check(wrong)}{why}."
        kind = "wrong_sql" if self.agent == "sql" and path == "$.sql_query" else "wrong_arguments"
        return Problem(kind, locate_problem(self.call.turn, call=self.call.place, path=path, sentence=sentence))


def judge_agent(instance: Instance, ended: LoopResult, agents: tuple[str, ...]) -> Verdict:
    """Return the verdict of one agent in one turn.

    The case study has no such scenario, so its rule is not applied.
    """
    (agent,) = agents
    step = _build_step(agent, instance, [call for call in iter_calls(ended) if call.turn == 0])
    made = sum(1 for _ in iter_calls(ended))
    once = Check(
        f"one valid call of {TOOL_BY_AGENT[agent]}", made == 1 and _is_valid_call(step.call), f"calls made: {made}"
    )
    case = judging.CheckedResult(
        instance=instance,
        ended=ended,
        rule=AGENT_RULE.format(agent=agent, tool=TOOL_BY_AGENT[agent], right=RIGHT_BY_AGENT[agent]),
        checks=(once, *step.checks),
        case_study_checks=None,
        fallback_problem=_find_agent_problem(ended, step, made),
        good_ends=frozenset({EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED}),
        counts={f"{agent}_checks": len(step.checks), f"{agent}_checks_held": sum(check.ok for check in step.checks)},
    )
    return judging.judge(case)


def build_expected_calls(instance: Instance, agents: tuple[str, ...]) -> ExpectedCalls:
    """Return one expected call of each agent's tool, which is right if every check of it holds."""
    return ExpectedCalls(
        True,
        tuple(
            ExpectedToolCall(
                TOOL_BY_AGENT[agent],
                partial(_has_right_arguments, agent, instance),
                partial(_list_wrong_paths, agent, instance),
            )
            for agent in agents
        ),
        ordered=True,
    )


def judge_chain(instance: Instance, ended: LoopResult, agents: tuple[str, ...]) -> Verdict:
    """Return the verdict of all agents in order.

    It names the first wrong agent, and the later ones that are wrong too.
    """
    steps = [_build_step(agent, instance, list(iter_calls(ended))) for agent in agents]
    wrong = [step for step in steps if step.failed_check]
    case = judging.CheckedResult(
        instance=instance,
        ended=ended,
        rule=CHAIN_RULE,
        checks=(*(check for step in steps for check in step.checks), _check_order(steps)),
        case_study_checks=None,
        fallback_problem=_find_chain_problem(ended, wrong),
        counts={
            **{f"{step.agent}_wrong": int(step.failed_check is not None) for step in steps},
            "wrong_after_the_first": max(len(wrong) - 1, 0),
        },
    )
    verdict = judging.judge(case)
    return _apply_first_cause(verdict, case.fallback_problem, called=wrong[0].call is not None) if wrong else verdict


def _build_step(agent: str, instance: Instance, calls: Sequence[RecordedCall]) -> AgentStep:
    """Return the agent's part: its last call counts, so that an agent may correct itself."""
    agent_calls = [call for call in calls if call.tool == TOOL_BY_AGENT[agent]]
    arguments = agent_calls[-1].result.arguments if agent_calls else None
    return AgentStep(agent, agent_calls[-1] if agent_calls else None, _run_checks(agent, instance, arguments or {}))


def _run_checks(agent: str, instance: Instance, given: JsonObject) -> tuple[Check, ...]:
    """Return the checks of the table, and those of whether the arguments are right."""
    space = load_workspaces()[instance.values["workspace_id"]]
    known = {
        "workspaces": tuple(load_workspaces()),
        "tables": tuple(space.tables),
        "columns": list_columns(instance.values["workspace_id"]),
    }
    return (*run_agent_checks(agent, given, known), *CHECKS_BY_AGENT[agent](given, instance))


def _has_right_arguments(agent: str, instance: Instance, arguments: JsonObject) -> bool:
    return all(check.ok for check in _run_checks(agent, instance, arguments))


def _list_wrong_paths(agent: str, instance: Instance, arguments: JsonObject) -> tuple[str, ...]:
    """Return the path of each failed check; a check that names none is about the agent's own field."""
    failed = (check for check in _run_checks(agent, instance, arguments) if not check.ok)
    paths = (check.detail if check.detail.startswith("$.") else f"$.{FIELD_BY_AGENT[agent]}" for check in failed)
    return tuple(dict.fromkeys(paths))


def _is_valid_call(call: RecordedCall | None) -> bool:
    return call is not None and call.ok and not call.result.schema_errors


def _check_order(steps: Sequence[AgentStep]) -> Check:
    places = [(step.call.turn, step.call.place) for step in steps if step.call]
    return Check("the agents come in their order", len(places) == len(steps) and places == sorted(places))


def _check_intent(given: JsonObject, instance: Instance) -> tuple[Check, ...]:
    expected_id = instance.values["workspace_id"]
    return (_check_equal("intent: workspace_id is the right one", given.get("workspace_id"), expected_id),)


def _check_tables(given: JsonObject, instance: Instance) -> tuple[Check, ...]:
    name = "table: relevant_tables are those needed"
    return (_check_equal(name, _to_sorted_texts(given.get("relevant_tables")), sorted(instance.values["tables"])),)


def _check_columns(given: JsonObject, instance: Instance) -> tuple[Check, ...]:
    kept, pruned = _to_sorted_texts(given.get("relevant_columns")), _to_sorted_texts(given.get("irrelevant_columns"))
    lost = [value for value in instance.values["columns"] if value not in kept]
    both = [column for column in pruned if column in kept]
    return (
        Check("column: every needed column is kept", not lost, f"{', '.join(lost)} is missing" if lost else ""),
        Check("column: none is both kept and pruned", not both, "$.irrelevant_columns" if both else ""),
    )


def _check_sql(given: JsonObject, instance: Instance) -> tuple[Check, ...]:
    query, tables = str(given.get("sql_query") or ""), load_workspaces()[instance.values["workspace_id"]].tables
    used = _to_sorted_texts([str(table).lower() for table in given.get("tables_used") or ()])
    read = list(sql.list_tables(query))
    agree = Check("sql: tables_used are the tables of the query", used == read, "$.tables_used" if used != read else "")
    return (*sql.build_query_checks(query, tables, instance.values["sql"]), agree)


CHECKS_BY_AGENT: dict[str, Callable[[JsonObject, Instance], tuple[Check, ...]]] = {
    "intent": _check_intent,
    "table": _check_tables,
    "column": _check_columns,
    "sql": _check_sql,
}


def _check_equal(name: str, given: object, expected: object) -> Check:
    return Check(
        name,
        given == expected,
        "" if given == expected else f"it is {render_short(given)}; {render_short(expected)} is right",
    )


def _to_sorted_texts(value: object) -> list[str]:
    return sorted({str(item) for item in value}) if isinstance(value, list) else []


def _describe_check(check: Check) -> str:
    return check.name.partition(": ")[2] or check.name


def _find_agent_problem(ended: LoopResult, step: AgentStep, made: int) -> Problem:
    if not has_calls(ended):
        return Problem(
            "no_tool_calls", locate_problem(0, path=CALLS_PATH, sentence="the answer is text and calls no tool.")
        )
    if step.call is not None and made > 1:
        return Problem(
            "too_many_calls", locate_problem(0, path=CALLS_PATH, sentence=f"{made} calls were made; one was asked for.")
        )
    return step.build_problem(ended)


def _find_chain_problem(ended: LoopResult, wrong: Sequence[AgentStep]) -> Problem:
    if not has_calls(ended):
        return Problem(
            "no_tool_calls", locate_problem(0, path=CALLS_PATH, sentence="the answer is text and calls no tool.")
        )
    if not wrong:
        description = "all four agents are right, but they did not come in their order."
        return Problem("wrong_order", locate_problem(find_last_turn(ended), path=CALLS_PATH, sentence=description))
    found = wrong[0].build_problem(ended)
    if len(wrong) == 1:
        return found
    after = ", ".join(step.agent for step in wrong[1:])
    sentence = f"{found.bad.sentence.rstrip('.')}; after it went wrong: {after}."
    return replace(found, bad=replace(found.bad, sentence=sentence))


def _apply_first_cause(verdict: Verdict, step_problem: Problem, *, called: bool) -> Verdict:
    """Return the verdict with the wrong agent as the first problem, if it `called` before the first failed call.

    It also replaces the class of a run that ran out of turns, which says only how the run ended.
    """
    bad = verdict.first_bad
    if verdict.outcome != "fail" or bad is None:
        return verdict
    out_of_turns = verdict.failure_class == classify_end(EndReason.MAX_TURNS_EXCEEDED)
    if not out_of_turns and not (called and step_problem.bad.turn < bad.turn):
        return verdict
    return replace(
        verdict,
        failure_class=step_problem.failure_class,
        sentence=step_problem.bad.sentence,
        first_bad=step_problem.bad,
    )
