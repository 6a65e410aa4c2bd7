"""Judging of the four agents, one by one or as a chain. The verdict of a chain names the first wrong agent.

The agents are four steps from a question to an SQL query: choose the workspace, then its tables, then their columns,
and write the query. Each agent has to call its own tool; in a chain an agent may repeat its call to correct it.
"""

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
from toolbench.evals.judging.diagnosis import NO_TOOL_CALLS_PROBLEM, Problem, find_last_turn, locate_problem
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
MAIN_ARGUMENT_BY_AGENT = {
    "intent": "workspace_id",
    "table": "relevant_tables",
    "column": "relevant_columns",
    "sql": "sql_query",
}
AGENT_RULE = "The {agent} agent calls {tool} once; every check of the call holds, and {right}."
CHAIN_RULE = "The four agents call in their order. An agent may correct its call; every check of its last call holds."
RIGHT_BY_AGENT = {  # when the arguments of a call are right, for AGENT_RULE
    "intent": "workspace_id is the one that can answer",
    "table": "relevant_tables are those that the question needs, and no others",
    "column": "every needed column is among the relevant ones and none among the others",
    "sql": "the query gives the right value on the stored rows and tables_used are the tables it reads",
}


@dataclass(frozen=True, slots=True)
class AgentStep:
    """One agent's part of a trial.

    Attributes:
        call: The agent's last call; None if it made none.
        checks: The checks of that call, never empty. If the agent made no call, or the arguments of the call could not
            be parsed, empty arguments are checked.
    """

    agent: str
    call: RecordedCall | None
    checks: tuple[Check, ...]

    @property
    def failed_check(self) -> Check | None:
        """Return the first check that fails; None if all hold."""
        return next((check for check in self.checks if not check.ok), None)

    def build_problem(self, loop_result: LoopResult) -> Problem:
        """Return the problem of this agent's call, or of the missing call if it made none.

        If all checks hold, the problem names the first check, and judging does not use it.
        """
        if self.call is None:
            sentence = f"the run ends here; the {self.agent} agent never called {TOOL_BY_AGENT[self.agent]}."
            return Problem(
                "missing_call", locate_problem(find_last_turn(loop_result), path=CALLS_PATH, sentence=sentence)
            )
        check = self.failed_check or self.checks[0]
        path = _find_path(self.agent, check)
        reason = f"; {check.detail}" if check.detail and check.detail != path else ""
        sentence = f"the {self.agent} agent is wrong at {path}: a check fails: {_describe_check(check)}{reason}."
        failure_class = "wrong_sql" if self.agent == "sql" and path == "$.sql_query" else "wrong_arguments"
        return Problem(
            failure_class, locate_problem(self.call.turn, call=self.call.index, path=path, sentence=sentence)
        )


def judge_agent(instance: Instance, loop_result: LoopResult, agents: tuple[str, ...]) -> Verdict:
    """Return the verdict of a single agent, which has to call its tool in the first turn.

    The case study's rule is not applied, because the case study has no such scenario.

    Args:
        instance: The instance.
        loop_result: The finished run.
        agents: The name of the agent, as a tuple because `judge_chain` has the same signature.
    """
    (agent,) = agents
    step = _build_step(agent, instance, [call for call in iter_calls(loop_result) if call.turn == 0])
    call_count = sum(1 for _ in iter_calls(loop_result))
    call_check = Check(
        f"one valid call of {TOOL_BY_AGENT[agent]}",
        call_count == 1 and _is_valid_call(step.call),
        f"calls made: {call_count}",
    )
    checked = judging.CheckedResult(
        instance=instance,
        loop_result=loop_result,
        rule=AGENT_RULE.format(agent=agent, tool=TOOL_BY_AGENT[agent], right=RIGHT_BY_AGENT[agent]),
        checks=(call_check, *step.checks),
        case_study_checks=None,
        fallback_problem=_find_agent_problem(loop_result, step, call_count),
        good_ends=frozenset({EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED}),
        counts={f"{agent}_checks": len(step.checks), f"{agent}_checks_held": sum(check.ok for check in step.checks)},
    )
    return judging.judge(checked)


def build_expected_calls(instance: Instance, agents: tuple[str, ...]) -> ExpectedCalls:
    """Return one expected call of each agent's tool; a call is right if every check of it holds."""
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
        is_ordered=True,
        accepts_refused=len(agents) > 1,  # `judge_agent` requires a valid call, `judge_chain` does not
    )


def judge_chain(instance: Instance, loop_result: LoopResult, agents: tuple[str, ...]) -> Verdict:
    """Return the verdict of all agents in order.

    The sentence of a failure names the first wrong agent and all later wrong ones. Another problem of the run takes
    precedence if it is in the same turn as the first wrong agent's call or earlier, or if that agent made no call.
    Running out of turns never takes precedence.
    """
    steps = [_build_step(agent, instance, list(iter_calls(loop_result))) for agent in agents]
    wrong_steps = [step for step in steps if step.failed_check]
    checked = judging.CheckedResult(
        instance=instance,
        loop_result=loop_result,
        rule=CHAIN_RULE,
        checks=(*(check for step in steps for check in step.checks), _check_order(steps)),
        case_study_checks=None,
        fallback_problem=_find_chain_problem(loop_result, wrong_steps),
        counts={
            **{f"{step.agent}_wrong": int(step.failed_check is not None) for step in steps},
            "wrong_after_the_first": max(len(wrong_steps) - 1, 0),
        },
    )
    verdict = judging.judge(checked)
    if not wrong_steps:
        return verdict
    return _apply_first_problem(verdict, checked.fallback_problem, has_called=wrong_steps[0].call is not None)


def _build_step(agent: str, instance: Instance, calls: Sequence[RecordedCall]) -> AgentStep:
    """Return the agent's part of a trial; the agent's last call counts, because it may correct an earlier one."""
    agent_calls = [call for call in calls if call.tool == TOOL_BY_AGENT[agent]]
    arguments = agent_calls[-1].result.arguments if agent_calls else None
    return AgentStep(agent, agent_calls[-1] if agent_calls else None, _run_checks(agent, instance, arguments or {}))


def _run_checks(agent: str, instance: Instance, arguments: JsonObject) -> tuple[Check, ...]:
    """Return the checks of data/agent_checks.json, then those that compare the arguments with the right ones."""
    workspace = load_workspaces()[instance.values["workspace_id"]]
    existing_names = {
        "workspaces": tuple(load_workspaces()),
        "tables": tuple(workspace.tables),
        "columns": list_columns(instance.values["workspace_id"]),
    }
    return (*run_agent_checks(agent, arguments, existing_names), *CHECKS_BY_AGENT[agent](arguments, instance))


def _has_right_arguments(agent: str, instance: Instance, arguments: JsonObject) -> bool:
    return all(check.ok for check in _run_checks(agent, instance, arguments))


def _list_wrong_paths(agent: str, instance: Instance, arguments: JsonObject) -> tuple[str, ...]:
    """Return the path of each failed check, each path once."""
    checks = _run_checks(agent, instance, arguments)
    return tuple(dict.fromkeys(_find_path(agent, check) for check in checks if not check.ok))


def _find_path(agent: str, check: Check) -> str:
    """Return the JSON path that is the detail of a failed check; else the path of the agent's main argument."""
    return check.detail if check.detail.startswith("$.") else f"$.{MAIN_ARGUMENT_BY_AGENT[agent]}"


def _is_valid_call(call: RecordedCall | None) -> bool:
    return call is not None and call.ok and not call.result.schema_errors


def _check_order(steps: Sequence[AgentStep]) -> Check:
    positions = [(step.call.turn, step.call.index) for step in steps if step.call]
    return Check("the agents call in their order", len(positions) == len(steps) and positions == sorted(positions))


def _check_intent(arguments: JsonObject, instance: Instance) -> tuple[Check, ...]:
    expected_id = instance.values["workspace_id"]
    return (_check_equal("intent: workspace_id is the right one", arguments.get("workspace_id"), expected_id),)


def _check_tables(arguments: JsonObject, instance: Instance) -> tuple[Check, ...]:
    name = "table: relevant_tables are those needed"
    tables = _to_sorted_texts(arguments.get("relevant_tables"))
    return (_check_equal(name, tables, sorted(instance.values["tables"])),)


def _check_columns(arguments: JsonObject, instance: Instance) -> tuple[Check, ...]:
    kept = _to_sorted_texts(arguments.get("relevant_columns"))
    missing = [column for column in instance.values["columns"] if column not in kept]
    kept_and_pruned = set(kept) & set(_to_sorted_texts(arguments.get("irrelevant_columns")))
    return (
        Check(
            "column: every needed column is kept", not missing, f"{', '.join(missing)} is missing" if missing else ""
        ),
        Check(
            "column: none is both kept and pruned",
            not kept_and_pruned,
            "$.irrelevant_columns" if kept_and_pruned else "",
        ),
    )


def _check_sql(arguments: JsonObject, instance: Instance) -> tuple[Check, ...]:
    query, tables = str(arguments.get("sql_query") or ""), load_workspaces()[instance.values["workspace_id"]].tables
    used_tables = sorted({table.lower() for table in _to_sorted_texts(arguments.get("tables_used"))})
    is_same = used_tables == list(sql.list_tables(query))
    tables_check = Check("sql: tables_used are the tables of the query", is_same, "" if is_same else "$.tables_used")
    return (*sql.build_query_checks(query, tables, instance.values["sql"]), tables_check)


CHECKS_BY_AGENT: dict[str, Callable[[JsonObject, Instance], tuple[Check, ...]]] = {
    "intent": _check_intent,
    "table": _check_tables,
    "column": _check_columns,
    "sql": _check_sql,
}


def _check_equal(name: str, value: object, expected: object) -> Check:
    return Check(
        name,
        value == expected,
        "" if value == expected else f"it is {render_short(value)}; {render_short(expected)} is right",
    )


def _to_sorted_texts(value: object) -> list[str]:
    """Return the items of a list as sorted texts, each once; empty for any other value."""
    return sorted({str(item) for item in value}) if isinstance(value, list) else []


def _describe_check(check: Check) -> str:
    """Return the check's name without the agent's."""
    return check.name.partition(": ")[2] or check.name


def _find_agent_problem(loop_result: LoopResult, step: AgentStep, call_count: int) -> Problem:
    if not has_calls(loop_result):
        return NO_TOOL_CALLS_PROBLEM
    if step.call is not None and call_count > 1:
        sentence = f"{call_count} calls were made; the task needs one."
        return Problem("too_many_calls", locate_problem(0, path=CALLS_PATH, sentence=sentence))
    return step.build_problem(loop_result)


def _find_chain_problem(loop_result: LoopResult, wrong_steps: Sequence[AgentStep]) -> Problem:
    if not has_calls(loop_result):
        return NO_TOOL_CALLS_PROBLEM
    if not wrong_steps:
        sentence = "all four agents are right, but they did not call in their order."
        return Problem("wrong_order", locate_problem(find_last_turn(loop_result), path=CALLS_PATH, sentence=sentence))
    problem = wrong_steps[0].build_problem(loop_result)
    if len(wrong_steps) == 1:
        return problem
    later_agents = ", ".join(step.agent for step in wrong_steps[1:])
    sentence = f"{problem.location.sentence.rstrip('.')}; later agents are wrong, too: {later_agents}."
    return replace(problem, location=replace(problem.location, sentence=sentence))


def _apply_first_problem(verdict: Verdict, step_problem: Problem, *, has_called: bool) -> Verdict:
    """Return a failed verdict with the problem of the first wrong agent, if that problem is in an earlier turn.

    The agent's problem also replaces that of a run that ran out of turns, which says only how the run ended. Any other
    verdict is returned unchanged.

    Args:
        verdict: The verdict by the rules of all scenarios.
        step_problem: The problem of the first wrong agent.
        has_called: Whether that agent made a call; a missing call replaces only the problem of running out of turns.
    """
    first_bad = verdict.first_bad
    if verdict.outcome != "fail" or first_bad is None:
        return verdict
    is_out_of_turns = verdict.failure_class == classify_end(EndReason.MAX_TURNS_EXCEEDED)
    if not is_out_of_turns and not (has_called and step_problem.location.turn < first_bad.turn):
        return verdict
    return replace(
        verdict,
        failure_class=step_problem.failure_class,
        sentence=step_problem.location.sentence,
        first_bad=step_problem.location,
    )
