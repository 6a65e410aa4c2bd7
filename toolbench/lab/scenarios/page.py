"""Data of a scenario's page: prompts, tools and rules of one instance in any known version.

The instance has the published wording or is drawn from a seed.
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
from toolbench.evals.judging.case_study_rule import DONE_CHECK
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Scenario
from toolbench.evals.user_cases.copying import is_copyable
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.scenarios.catalogue import MAX_SEED, load_scenario

# Without turns and answer. Judging it gives the rule of a scenario and the names of its checks.
EMPTY_RESULT = LoopResult(EndReason.FINAL, "", (), (), Usage())


@dataclass(frozen=True, slots=True)
class ConstraintSupport:
    """Support of a constraint for the tools' schemas.

    Attributes:
        constraint: one of CONSTRAINTS, the ways to constrain an answer.
        dropped: the keywords that the constraint does not enforce.
        refused: why the constraint cannot express the schemas; "" if it can.
    """

    constraint: str
    dropped: tuple[DroppedKeyword, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioPage:
    """Data of the page of one scenario.

    Attributes:
        tools: name, description and JSON Schema of each tool that is offered to the model, as text.
        hidden_tools: names of the tools that are never offered; a call of one of them fails.
        layer: the policy patch of the instance as indented JSON; "" if it has none.
        values: names and values of the instance, the values as JSON.
        rule: what counts as a pass, in words.
        is_published: whether the scenario is part of the case study, which published its wording.
        has_case_study_rule: whether trials are also judged by the case study's rule.
        checks: names of the checks that a verdict lists.
        examples: names of the example sets.
        lint: why some providers may refuse the tools.
        constraint_support: the support of each constraint for the tools' schemas; () if no tool is offered.
        seed: the seed of the instance; 0 for the published wording.
        kind: PUBLISHED_WORDING or DRAWN.
        is_case: whether the scenario is a case, which has a single instance.
        versions: the versions that can be shown, the newest first.
        is_copyable: whether a test case can be made from the instance.
    """

    scenario: Scenario
    instance: Instance
    tools: tuple[tuple[str, str, str], ...]
    hidden_tools: tuple[str, ...]
    layer: str
    values: tuple[tuple[str, str], ...]
    rule: str
    is_published: bool
    has_case_study_rule: bool
    checks: tuple[str, ...]
    examples: tuple[str, ...]
    lint: tuple[Finding, ...]
    constraint_support: tuple[ConstraintSupport, ...]
    seed: int
    kind: str
    next_seed: int
    is_case: bool
    versions: tuple[int, ...]
    is_copyable: bool

    @property
    def case_study_check(self) -> str:
        """Name of the check that counts only by the case study's rule; "" for a control."""
        return "" if self.scenario.control else DONE_CHECK

    @property
    def copy_query(self) -> str:
        """URL query of the form that copies this instance as a test case."""
        drawn_fields = {"seed": self.seed, "version": self.instance.version} if self.kind == DRAWN else {}
        return urlencode({"scenario": self.scenario.slug, **drawn_fields})


def get_scenarios() -> Mapping[str, tuple[Scenario, ...]]:
    """Return the scenarios in code by group, in the order of the catalogue, without a query."""
    return scenarios.group_scenarios()


def get_scenario_page(slug: str, seed: str = "", version: str = "") -> ScenarioPage:
    """Return the page data of one instance. Only a case needs a query.

    Args:
        slug: the slug.
        seed: whole number from 0 to MAX_SEED, from which the instance is drawn; any other text gives the published
            wording.
        version: a version of a scenario in code; any other text gives the newest version, as does a case.

    Raises:
        KeyError: the slug is unknown.
    """
    code_versions = tuple(scenario.version for scenario in scenarios.list_versions(slug))
    scenario, instance = choose_instance(slug, seed, version)
    verdict = scenario.judge(instance, EMPTY_RESULT, scenario.open(instance))
    offered_tools = [tool for tool in instance.tools if tool.exposed_to_model]
    return ScenarioPage(
        scenario=scenario,
        instance=instance,
        tools=tuple((tool.name, tool.description, _render_json(dict(tool.parameters))) for tool in offered_tools),
        hidden_tools=tuple(tool.name for tool in instance.tools if not tool.exposed_to_model),
        layer=_render_json(instance.layer) if instance.layer else "",
        values=tuple((name, json.dumps(value, ensure_ascii=False)) for name, value in instance.values.items()),
        rule=verdict.rule,
        is_published=scenarios.is_published(slug),
        has_case_study_rule=verdict.parity_pass is not None,
        checks=tuple(check.name for check in verdict.checks),
        examples=tuple(scenarios.load_example_sets(slug)),
        lint=lint_tools(offered_tools),
        constraint_support=tuple(_build_constraint_support(offered_tools, constraint) for constraint in CONSTRAINTS)
        if offered_tools
        else (),
        seed=instance.seed,
        kind=instance.kind,
        next_seed=instance.seed + 1,
        is_case=not code_versions,
        versions=code_versions or (scenario.version,),
        is_copyable=is_copyable(scenario),
    )


def choose_instance(slug: str, seed: str, version: str) -> tuple[Scenario, Instance]:
    """Return the scenario and the instance that `get_scenario_page` shows for the same arguments.

    Raises:
        KeyError: the slug is unknown.
    """
    code_versions = [scenario.version for scenario in scenarios.list_versions(slug)]
    version_number, seed_number = parse_whole_number(version), parse_whole_number(seed, maximum=MAX_SEED)
    scenario = load_scenario(slug, version_number if version_number in code_versions else None)
    if seed_number is None:
        return scenario, scenario.draw_instance(0, kind=PUBLISHED_WORDING)
    return scenario, scenario.draw_instance(seed_number, kind=DRAWN)


def _build_constraint_support(tools: Sequence[ToolDefinition], constraint: str) -> ConstraintSupport:
    try:
        return ConstraintSupport(
            constraint,
            compile_constraint([tool.to_openai() for tool in tools], constraint, ConstraintOptions()).dropped_keywords,
        )
    except PlanError as error:
        return ConstraintSupport(constraint, refused=str(error))


def _render_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
