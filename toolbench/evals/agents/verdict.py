"""Judging the four agents: their checks, whether they are right, and in a chain where it went wrong first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from toolbench.engine.events import End, Ended
from toolbench.engine.messages import JsonObject
from toolbench.evals.agents import sql
from toolbench.evals.agents.checks import check_agent
from toolbench.evals.agents.workspaces import columns_of, world
from toolbench.evals.expected_calls import Due, DueCall
from toolbench.evals.judging import verdict as judging
from toolbench.evals.judging.diagnosis import Problem, at, last_turn
from toolbench.evals.judging.failure_classes import of_end
from toolbench.evals.judging.messages import shown
from toolbench.evals.record_counts import CALLS, Called, any_calls, called
from toolbench.evals.types import Check, Instance, Verdict

ORDER = ("intent", "table", "column", "sql")
TOOLS = {"intent": "classify_intent", "table": "select_tables", "column": "prune_columns", "sql": "generate_sql"}
FIELDS = {"intent": "workspace_id", "table": "relevant_tables", "column": "relevant_columns", "sql": "sql_query"}
RULE = "The {agent} agent calls {tool} once; every check of it holds, and {right}."
CHAIN_RULE = "The four agents call in their order, one call each or mended; every check holds and each is right."
RIGHT = {
    "intent": "workspace_id is the one that can answer",
    "table": "relevant_tables are those that the question needs, and no others",
    "column": "every needed column is among the relevant ones and none among the others",
    "sql": "the query gives the right value on the stored rows and tables_used are the tables it reads",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One agent's part of a trial: its last call (None: it never called) and the checks of it."""

    agent: str
    call: Called | None
    checks: tuple[Check, ...]

    @property
    def wrong(self) -> Check | None:
        return next((check for check in self.checks if not check.ok), None)

    def problem(self, ended: Ended) -> Problem:
        if self.call is None:
            what = f"the run ends here; the {self.agent} agent never called {TOOLS[self.agent]}."
            return Problem("missing_call", at(last_turn(ended), path=CALLS, what=what))
        wrong = self.wrong or self.checks[0]
        path = wrong.detail if wrong.detail.startswith("$.") else f"$.{FIELDS[self.agent]}"
        why = f"; {wrong.detail}" if wrong.detail and wrong.detail != path else ""
        what = f"the {self.agent} agent is wrong at {path}: not so that {_said(wrong)}{why}."
        kind = "wrong_sql" if self.agent == "sql" and path == "$.sql_query" else "wrong_arguments"
        return Problem(kind, at(self.call.turn, call=self.call.place, path=path, what=what))


def judge_agent(instance: Instance, ended: Ended, agents: tuple[str, ...]) -> Verdict:
    """One agent in one turn. The case study has no such scenario, so there is no parity pass."""
    (agent,) = agents
    step = _step(agent, instance, [one for one in called(ended) if one.turn == 0])
    made = sum(1 for _ in called(ended))
    once = Check(f"one valid call of {TOOLS[agent]}", made == 1 and _ok(step.call), f"calls made: {made}")
    case = judging.Case(
        instance=instance,
        ended=ended,
        rule=RULE.format(agent=agent, tool=TOOLS[agent], right=RIGHT[agent]),
        checks=(once, *step.checks),
        parity_checks=None,
        otherwise=_one_problem(ended, step, made),
        good_ends=frozenset({End.FINAL, End.MAX_TURNS_EXCEEDED}),
        counts={f"{agent}_checks": len(step.checks), f"{agent}_checks_held": sum(one.ok for one in step.checks)},
    )
    return judging.judge(case)


def due(instance: Instance, agents: tuple[str, ...]) -> Due:
    """One call of each agent's tool, right when every check of it holds."""
    return Due(True, tuple(DueCall(TOOLS[agent], partial(_is_right, agent, instance)) for agent in agents))


def judge_chain(instance: Instance, ended: Ended, agents: tuple[str, ...]) -> Verdict:
    """All agents in order; the first that is wrong is named, with those after it that went wrong as well."""
    every = [_step(agent, instance, list(called(ended))) for agent in agents]
    wrong = [step for step in every if step.wrong]
    case = judging.Case(
        instance=instance,
        ended=ended,
        rule=CHAIN_RULE,
        checks=(*(check for step in every for check in step.checks), _in_order(every)),
        parity_checks=None,
        otherwise=_chain_problem(ended, wrong),
        counts={
            **{f"{step.agent}_wrong": int(step.wrong is not None) for step in every},
            "wrong_after_the_first": max(len(wrong) - 1, 0),
        },
    )
    verdict = judging.judge(case)
    return _first_cause(verdict, case.otherwise, called=wrong[0].call is not None) if wrong else verdict


def _step(agent: str, instance: Instance, calls: Sequence[Called]) -> Step:
    """The last call of the agent's tool counts, so that an agent may mend its own."""
    mine = [one for one in calls if one.tool == TOOLS[agent]]
    arguments = mine[-1].result.arguments if mine else None
    return Step(agent, mine[-1] if mine else None, _checks(agent, instance, arguments or {}))


def _checks(agent: str, instance: Instance, given: JsonObject) -> tuple[Check, ...]:
    """Those of the table, and whether the arguments are right."""
    space = world()[instance.values["workspace_id"]]
    known = {
        "workspaces": tuple(world()),
        "tables": tuple(space.tables),
        "columns": columns_of(instance.values["workspace_id"]),
    }
    return (*check_agent(agent, given, known), *RIGHT_CHECKS[agent](given, instance))


def _is_right(agent: str, instance: Instance, arguments: JsonObject) -> bool:
    return all(check.ok for check in _checks(agent, instance, arguments))


def _ok(one: Called | None) -> bool:
    return one is not None and one.ok and not one.result.schema_errors


def _in_order(every: Sequence[Step]) -> Check:
    places = [(step.call.turn, step.call.place) for step in every if step.call]
    return Check("the agents come in their order", len(places) == len(every) and places == sorted(places))


def _right_intent(given: JsonObject, instance: Instance) -> tuple[Check, ...]:
    wanted = instance.values["workspace_id"]
    return (_same("intent: workspace_id is the right one", given.get("workspace_id"), wanted),)


def _right_tables(given: JsonObject, instance: Instance) -> tuple[Check, ...]:
    name = "table: relevant_tables are those needed"
    return (_same(name, _set(given.get("relevant_tables")), sorted(instance.values["tables"])),)


def _right_columns(given: JsonObject, instance: Instance) -> tuple[Check, ...]:
    kept, pruned = _set(given.get("relevant_columns")), _set(given.get("irrelevant_columns"))
    lost = [one for one in instance.values["columns"] if one not in kept]
    both = [one for one in pruned if one in kept]
    return (
        Check("column: every needed column is kept", not lost, f"{', '.join(lost)} is missing" if lost else ""),
        Check("column: none is both kept and pruned", not both, "$.irrelevant_columns" if both else ""),
    )


def _right_sql(given: JsonObject, instance: Instance) -> tuple[Check, ...]:
    query, tables = str(given.get("sql_query") or ""), world()[instance.values["workspace_id"]].tables
    used = _set([str(one).lower() for one in given.get("tables_used") or ()])
    read = list(sql.tables_of(query))
    agree = Check("sql: tables_used are the tables of the query", used == read, "$.tables_used" if used != read else "")
    return (*sql.check_query(query, tables, instance.values["sql"]), agree)


RIGHT_CHECKS: dict[str, Callable[[JsonObject, Instance], tuple[Check, ...]]] = {
    "intent": _right_intent,
    "table": _right_tables,
    "column": _right_columns,
    "sql": _right_sql,
}


def _same(name: str, given: object, wanted: object) -> Check:
    return Check(name, given == wanted, "" if given == wanted else f"it is {shown(given)}; {shown(wanted)} is right")


def _set(value: object) -> list[str]:
    return sorted({str(one) for one in value}) if isinstance(value, list) else []


def _said(check: Check) -> str:
    return check.name.partition(": ")[2] or check.name


def _one_problem(ended: Ended, step: Step, made: int) -> Problem:
    if not any_calls(ended):
        return Problem("no_tool_calls", at(0, path=CALLS, what="the answer is text and calls no tool."))
    if step.call is not None and made > 1:
        return Problem("too_many_calls", at(0, path=CALLS, what=f"{made} calls were made; one was asked for."))
    return step.problem(ended)


def _chain_problem(ended: Ended, wrong: Sequence[Step]) -> Problem:
    if not any_calls(ended):
        return Problem("no_tool_calls", at(0, path=CALLS, what="the answer is text and calls no tool."))
    if not wrong:
        what = "all four agents are right, but they did not come in their order."
        return Problem("wrong_order", at(last_turn(ended), path=CALLS, what=what))
    found = wrong[0].problem(ended)
    if len(wrong) == 1:
        return found
    after = ", ".join(step.agent for step in wrong[1:])
    sentence = f"{found.bad.sentence.rstrip('.')}; after it went wrong: {after}."
    return replace(found, bad=replace(found.bad, sentence=sentence))


def _first_cause(verdict: Verdict, own: Problem, *, called: bool) -> Verdict:
    """A wrong agent that `called` before the first failed call is where it went wrong first; that turns ran out is only
    how it ended."""
    bad = verdict.first_bad
    if verdict.outcome != "fail" or bad is None:
        return verdict
    out_of_turns = verdict.failure_class == of_end(End.MAX_TURNS_EXCEEDED)
    if not out_of_turns and not (called and own.bad.turn < bad.turn):
        return verdict
    return replace(verdict, failure_class=own.failure_class, sentence=own.bad.sentence, first_bad=own.bad)
