"""What the scenario pages show: prompts, tools and rules of one instance, in the first wording (the case study's own,
where it has the scenario) or drawn from a seed, in any known version."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.constraints.dropped_keywords import DroppedKeyword
from toolbench.engine.constraints.schema_support import CONSTRAINTS
from toolbench.engine.errors import PlanError
from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.lint import lint_tools
from toolbench.engine.types import Finding, Usage
from toolbench.evals import scenarios
from toolbench.evals.types import Instance, Scenario
from toolbench.lab.scenarios.catalogue import CASE_GROUPS, load_scenario
from toolbench.lab.whole_numbers import parse_whole_number

MAX_SEED = 999_999_999
EMPTY_RUN = LoopResult(EndReason.FINAL, "", (), (), Usage())  # judged only to read the rule and its checks


@dataclass(frozen=True, slots=True)
class ConstraintSupport:
    """What one way of constraining leaves out of the tools' schemas; `refused` where it cannot hold them at all."""

    constraint: str
    dropped: tuple[DroppedKeyword, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioPage:
    """`tools` are (name, description, JSON Schema as text); `lint` is what may trouble some provider about them,
    `constraint_support` what the method constrained does not hold of them, by constraint. `published`: the case study
    has it, with a wording of its own; `has_case_study_rule`: it is judged by the case study's rule, too. `case`: it is
    a case, and nothing is drawn. `versions` are those that can be shown, the newest first."""

    scenario: Scenario
    instance: Instance
    tools: tuple[tuple[str, str, str], ...]
    layer: str
    values: tuple[tuple[str, str], ...]
    rule: str
    published: bool
    has_case_study_rule: bool
    checks: tuple[str, ...]
    examples: tuple[str, ...]
    lint: tuple[Finding, ...]
    constraint_support: tuple[ConstraintSupport, ...]
    seed: int
    kind: str
    next_seed: int
    case: bool
    versions: tuple[int, ...]


def get_scenarios() -> Mapping[str, tuple[Scenario, ...]]:
    """By group, in catalogue order. No query: scenarios are code and data."""
    return scenarios.group_scenarios()


def get_scenario(slug: str, seed: str = "", version: str = "") -> ScenarioPage:
    """The parity instance, or the one drawn from `seed`, in the newest version unless an earlier one is named. Raises
    KeyError for an unknown slug. No query but for a case."""
    known = tuple(one.version for one in scenarios.list_versions(slug))
    named = parse_whole_number(version)
    scenario = load_scenario(slug, named if named in known else None)
    drawn = parse_whole_number(seed, most=MAX_SEED)
    number, kind = (0, "parity") if drawn is None else (drawn, "drawn")
    instance = scenario.draw_instance(number, kind=kind)
    unanswered = scenario.judge(instance, EMPTY_RUN, scenario.open(instance))
    return ScenarioPage(
        scenario=scenario,
        instance=instance,
        tools=tuple((tool.name, tool.description, _render_json(dict(tool.parameters))) for tool in instance.tools),
        layer=_render_json(instance.layer) if instance.layer else "",
        values=tuple((name, json.dumps(value, ensure_ascii=False)) for name, value in instance.values.items()),
        rule=unanswered.rule,
        published=scenarios.is_published(slug),
        has_case_study_rule=unanswered.parity_pass is not None,
        checks=tuple(check.name for check in unanswered.checks),
        examples=tuple(scenarios.example_sets(slug)),
        lint=lint_tools(instance.tools),
        constraint_support=tuple(_build_constraint_support(instance.tools, constraint) for constraint in CONSTRAINTS)
        if instance.tools
        else (),
        seed=number,
        kind=kind,
        next_seed=number + 1,
        case=scenario.group in CASE_GROUPS,
        versions=known or (scenario.version,),
    )


def _build_constraint_support(tools: Sequence[ToolDefinition], constraint: str) -> ConstraintSupport:
    try:
        return ConstraintSupport(
            constraint,
            compile_constraint([tool.to_openai() for tool in tools], constraint, ConstraintOptions()).dropped,
        )
    except PlanError as error:
        return ConstraintSupport(constraint, refused=str(error))


def _render_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
