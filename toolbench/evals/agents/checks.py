"""Checks of an agent's call that do not depend on the right answer: the rows of data/agent_checks.json.

agents/verdict.py describes the agents.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import freeze_row, read_table
from toolbench.evals.types import Check

ExistingNames = Mapping[str, Sequence[str]]  # names by the keys workspaces, tables and columns


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """One row of data/agent_checks.json: a check of the arguments of an agent's call.

    Attributes:
        check: The condition as text.
        rule: The key of the predicate in RULE_PREDICATES that must hold for all `fields`.
        fields: The names of the arguments that are checked.
        among: The key of ExistingNames that has the allowed names; "" if the rule needs no names.
    """

    agent: str
    check: str
    rule: str
    fields: tuple[str, ...]
    among: str = ""


@cache
def load_agent_checks() -> tuple[AgentCheck, ...]:
    """Return every row, in the order of the file."""
    return tuple(AgentCheck(**freeze_row(row)) for row in read_table("agent_checks"))


def run_agent_checks(agent: str, arguments: JsonObject, existing_names: ExistingNames) -> tuple[Check, ...]:
    """Return one check for every row of the agent, in the order of the file.

    A check fails if one of its fields is missing. The detail of a failed check is the JSON path of its first wrong
    field.
    """
    return tuple(_run_check(row, arguments, existing_names) for row in load_agent_checks() if row.agent == agent)


def _run_check(row: AgentCheck, arguments: JsonObject, existing_names: ExistingNames) -> Check:
    allowed = existing_names.get(row.among, ())
    wrong = next((name for name in row.fields if not RULE_PREDICATES[row.rule](arguments, name, allowed)), None)
    return Check(f"{row.agent}: {row.check}", wrong is None, f"$.{wrong}" if wrong else "")


def _has_field(arguments: JsonObject, name: str, allowed: Sequence[str]) -> bool:
    return name in arguments


def _is_text(arguments: JsonObject, name: str, allowed: Sequence[str]) -> bool:
    return isinstance(arguments.get(name), str)


def _is_list(arguments: JsonObject, name: str, allowed: Sequence[str]) -> bool:
    return isinstance(arguments.get(name), list)


def _is_text_list(arguments: JsonObject, name: str, allowed: Sequence[str]) -> bool:
    value = arguments.get(name)
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_share(arguments: JsonObject, name: str, allowed: Sequence[str]) -> bool:
    value = arguments.get(name)
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _is_known(arguments: JsonObject, name: str, allowed: Sequence[str]) -> bool:
    value: Any = arguments.get(name)
    return value is not None and all(item in allowed for item in (value if isinstance(value, list) else [value]))


RULE_PREDICATES: dict[str, Callable[[JsonObject, str, Sequence[str]], bool]] = {
    "required": _has_field,
    "text": _is_text,
    "list": _is_list,
    "texts": _is_text_list,
    "share": _is_share,
    "known": _is_known,
}
