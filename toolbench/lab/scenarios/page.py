"""Scenario pages: prompts, tools and rules of one instance in any known version.

The instance has the first wording, which is the case study's where it has the scenario, or is drawn from a seed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.constraints.dropped_keywords import DroppedKeyword
from toolbench.engine.constraints.schema_support import CONSTRAINTS
from toolbench.engine.errors import PlanError
from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.lint import lint_tools
from toolbench.engine.types import Finding, Usage
from toolbench.evals import scenarios
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Scenario
from toolbench.evals.user_cases.copying import is_copyable
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.scenarios.catalogue import load_scenario

MAX_SEED = 999_999_999
EMPTY_RUN = LoopResult(EndReason.FINAL, "", (), (), Usage())  # judged only to read the rule and its checks


@dataclass(frozen=True, slots=True)
class ConstraintSupport:
    """The keywords of the tools' schemas that a constraint drops; `refused` says why it cannot express them at all."""

    constraint: str
    dropped: tuple[DroppedKeyword, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioPage:
    """Everything that a scenario page shows.

    Attributes:
        tools: name, description and JSON Schema as text.
        published: whether the case study has the scenario, with a wording of its own.
        has_case_study_rule: whether the case study's rule judges it too.
        lint: findings on tools that some provider may refuse.
        constraint_support: what each constraint drops of the tools' schemas.
        case: whether it is a case, of which no instance is drawn.
        versions: versions that can be shown, the newest first.
        copyable: whether a test case can be made of it.
    """

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
    copyable: bool

    @property
    def copy_query(self) -> str:
        """Return the query of the form that copies this instance as a test case."""
        drawn = {"seed": self.seed, "version": self.instance.version} if self.kind == DRAWN else {}
        return urlencode({"scenario": self.scenario.slug, **drawn})


def get_scenarios() -> Mapping[str, tuple[Scenario, ...]]:
    """Return the scenarios in code by group, in the order of the catalogue, without a query."""
    return scenarios.group_scenarios()


def get_scenario(slug: str, seed: str = "", version: str = "") -> ScenarioPage:
    """Return the page of the parity instance, or of the one drawn from `seed`.

    It shows the newest version unless `version` names an earlier one. Only a case needs a query.

    Raises:
        KeyError: the slug is unknown.
    """
    known = tuple(version.version for version in scenarios.list_versions(slug))
    scenario, instance = choose_instance(slug, seed, version)
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
        seed=instance.seed,
        kind=instance.kind,
        next_seed=instance.seed + 1,
        case=not known,
        versions=known or (scenario.version,),
        copyable=is_copyable(scenario),
    )


def choose_instance(slug: str, seed: str, version: str) -> tuple[Scenario, Instance]:
    """Return the scenario and its instance as `get_scenario` shows them.

    Raises:
        KeyError: the slug is unknown.
    """
    known = [scenario.version for scenario in scenarios.list_versions(slug)]
    named, drawn = parse_whole_number(version), parse_whole_number(seed, maximum=MAX_SEED)
    scenario = load_scenario(slug, named if named in known else None)
    number, kind = (0, PUBLISHED_WORDING) if drawn is None else (drawn, DRAWN)
    return scenario, scenario.draw_instance(number, kind=kind)


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
