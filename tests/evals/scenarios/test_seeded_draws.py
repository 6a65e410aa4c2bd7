"""Tests that equal seeds give equal instances, and that the published wording is the first one."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.evals import scenarios
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Scenario

SCENARIOS = scenarios.list_scenarios()
VERSION_1 = json.loads((Path(__file__).parent / "data" / "draws_of_version_1.json").read_text(encoding="utf-8"))
STATE = [scenario for scenario in SCENARIOS if scenario.group == "tools"]
WITH_EXAMPLES = [scenarios.lookup_scenario(scenario.slug, 1) for scenario in STATE]


def parse_examples(instance: Instance) -> list[list[tuple[str, dict[str, object]]]]:
    """Return the calls of the prompt's examples, message by message."""
    messages: list[list[tuple[str, dict[str, object]]]] = []
    for line in instance.system.splitlines():
        if re.fullmatch(r"Message \d+", line):
            messages.append([])
        elif found := re.fullmatch(r"(\w+) (\{.*\})", line):
            messages[-1].append((found[1], json.loads(found[2])))
    return messages


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.slug)
@pytest.mark.parametrize("kind", [PUBLISHED_WORDING, DRAWN])
def test_draw_instance_same_seed_gives_the_same_instance(scenario: Scenario, kind: str) -> None:
    assert scenario.draw_instance(11, kind=kind) == scenario.draw_instance(11, kind=kind)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.slug)
def test_draw_instance_texts_have_no_placeholder_left(scenario: Scenario) -> None:
    for seed in range(20):
        instance = scenario.draw_instance(seed)
        assert "$" not in instance.system + instance.user_text


@pytest.mark.parametrize("scenario", STATE, ids=lambda scenario: scenario.slug)
def test_draw_instance_of_state_scenario_differs_by_seed(scenario: Scenario) -> None:
    drawn = [scenario.draw_instance(seed) for seed in range(30)]
    assert len({instance.system for instance in drawn}) == 30
    assert len({instance.values["key"] for instance in drawn}) > 3
    assert len({tuple(tool.name for tool in instance.tools) for instance in drawn}) > 5


@pytest.mark.parametrize("scenario", STATE, ids=lambda scenario: scenario.slug)
def test_draw_instance_published_wording_varies_only_the_workspace(scenario: Scenario) -> None:
    first, second = scenario.draw_instance(1, kind=PUBLISHED_WORDING), scenario.draw_instance(2, kind=PUBLISHED_WORDING)
    assert first.user_text != second.user_text
    plain = [item.system.replace(item.values["workspace_id"], "ID") for item in (first, second)]
    assert plain[0] == plain[1]
    assert (first.values["key"], first.values["value"]) == ("foo", "bar")
    assert first.user_text == f"workspace_id={first.values['workspace_id']}"
    assert [tool.name for tool in first.tools] == ["state_get", "state_patch", "facts_commit"]


@pytest.mark.parametrize("scenario", STATE, ids=lambda scenario: scenario.slug)
def test_state_scenario_never_exposes_facts_commit(scenario: Scenario) -> None:
    exposed = ToolRegistry(scenario.draw_instance(3).tools).list_exposed()
    assert "facts_commit" not in {tool.name for tool in exposed}


@pytest.mark.parametrize("scenario", WITH_EXAMPLES, ids=lambda scenario: scenario.slug)
def test_version_1_prompt_examples_are_valid_calls(scenario: Scenario) -> None:
    instance = scenario.draw_instance(5)
    tools = {tool.name: tool for tool in instance.tools}
    calls = [call for message in parse_examples(instance) for call in message]
    assert calls
    assert all(list_schema_errors(tools[name], dict(arguments)) == () for name, arguments in calls)


@pytest.mark.parametrize(
    ("slug", "shape"),
    [
        ("happy_path", [["state_get"], ["state_patch"], []]),
        ("partial_success_failure", [["state_get", "state_patch"], ["state_patch"], []]),
        ("missing_workspace_id", [["state_get"], ["state_patch"], []]),
        ("type_error_recovery", [["state_get"], ["state_patch"], []]),
        ("happy_path_parallel", [["state_get", "state_patch"], []]),
        ("long_arguments_guard", [["state_get"], ["state_patch"], ["state_patch"], []]),
        ("tool_output_truncation", [["state_get"], ["state_patch"], []]),
    ],
)
@pytest.mark.parametrize("kind", [PUBLISHED_WORDING, DRAWN])
def test_version_1_prompt_examples_are_complete_and_in_order(slug: str, shape: list[list[str]], kind: str) -> None:
    messages = parse_examples(scenarios.lookup_scenario(slug, 1).draw_instance(9, kind=kind))
    assert [[name for name, _ in message] for message in messages] == shape


def test_missing_workspace_id_examples_omit_the_id() -> None:
    messages = parse_examples(scenarios.lookup_scenario("missing_workspace_id", 1).draw_instance(4))
    assert {"workspace_id" in arguments for message in messages for _, arguments in message} == {False}


def test_long_arguments_guard_only_the_long_example_exceeds_the_limit() -> None:
    for slug in ("long_arguments_guard", "long_arguments_guard_uncapped"):
        instance = scenarios.lookup_scenario(slug, 1).draw_instance(4)
        sizes = [len(json.dumps(arguments)) for message in parse_examples(instance) for _, arguments in message]
        limit = instance.layer["max_tool_args_bytes"]
        assert [size > limit for size in sizes] == [False, True, False]


@pytest.mark.parametrize(
    ("slug", "layer"),
    [
        ("happy_path", {}),
        ("partial_success_failure", {"request_overrides": {"parallel_tool_calls": True}}),
        ("happy_path_parallel", {"request_overrides": {"parallel_tool_calls": True}}),
        ("long_arguments_guard", {"max_tool_args_bytes": 300, "request_overrides": {"max_tokens": 256}}),
        ("long_arguments_guard_uncapped", {"max_tool_args_bytes": 300}),
        ("tool_output_truncation", {"max_tool_output_bytes": 5000, "tool_failure_policy": "tolerated"}),
        ("chat_only", {"tool_use_mode": "disabled", "request_overrides": {"max_tokens": 32}}),
        ("chat_plain", {"tool_use_mode": "relaxed"}),
        ("weather", {"max_turns": 1}),
        ("classify_intent", {"max_turns": 1}),
    ],
)
def test_draw_instance_has_the_policy_layer_of_its_scenario(slug: str, layer: dict[str, object]) -> None:
    assert scenarios.lookup_scenario(slug).draw_instance(1).layer == layer


def test_tool_output_truncation_alone_has_a_state_over_its_limit() -> None:
    for scenario in STATE:
        workspace = scenario.open(scenario.draw_instance(1))
        size = len(json.dumps(workspace.snapshot()))
        assert (size > 5000) is (scenario.slug == "tool_output_truncation")


def test_distractor_tools_answer_without_errors() -> None:
    for seed in range(20):
        for scenario in SCENARIOS:
            instance = scenario.draw_instance(seed)
            workspace = scenario.open(instance)
            others = [
                tool.name for tool in instance.tools if tool.name in ("clock_now", "notes_search", "unit_convert")
            ]
            answers = [workspace.call(name, {}, "c1") for name in others]
            assert all(isinstance(answer, dict) and "errors" not in answer for answer in answers)


def test_classify_intent_three_seeds_in_a_row_cover_three_workspaces() -> None:
    intent = scenarios.lookup_scenario("classify_intent")
    for kind in (PUBLISHED_WORDING, DRAWN):
        assert len({intent.draw_instance(seed, kind=kind).values["workspace_id"] for seed in (30, 31, 32)}) == 3
    assert len({intent.draw_instance(seed, kind=PUBLISHED_WORDING).user_text for seed in range(12)}) == 12


def test_weather_published_wording_has_another_city_in_every_repeat() -> None:
    weather = scenarios.lookup_scenario("weather")
    assert len({weather.draw_instance(seed, kind=PUBLISHED_WORDING).values["city"] for seed in range(1, 13)}) == 12


@pytest.mark.parametrize("slug", VERSION_1)
@pytest.mark.parametrize("kind", [PUBLISHED_WORDING, DRAWN])
def test_draw_instance_version_1_gives_the_same_bytes_per_seed(slug: str, kind: str) -> None:
    digest = hashlib.sha256()
    for seed in range(50):
        instance = scenarios.lookup_scenario(slug, 1).draw_instance(seed, kind=kind)
        tools = [[tool.name, tool.description, tool.parameters, tool.exposed_to_model] for tool in instance.tools]
        fields = [
            instance.scenario,
            instance.version,
            instance.kind,
            instance.seed,
            instance.system,
            instance.user_text,
            tools,
            instance.layer,
            instance.values,
        ]
        digest.update(json.dumps(fields, sort_keys=True).encode())
    assert digest.hexdigest() == VERSION_1[slug][kind]


@pytest.mark.parametrize("scenario", STATE, ids=lambda scenario: scenario.slug)
def test_draw_instance_version_2_keeps_values_and_tools_of_version_1(scenario: Scenario) -> None:
    for seed in range(30):
        now, before = scenario.draw_instance(seed), scenarios.lookup_scenario(scenario.slug, 1).draw_instance(seed)
        assert (now.version, before.version) == (2, 1)
        assert (now.prompt_version, before.prompt_version) == ("2", "1")
        assert (now.values, now.tools, now.user_text, now.layer) == (
            before.values,
            before.tools,
            before.user_text,
            before.layer,
        )
        assert now.system != before.system


@pytest.mark.parametrize("scenario", STATE, ids=lambda scenario: scenario.slug)
def test_draw_instance_version_2_names_path_value_and_workspace(scenario: Scenario) -> None:
    for seed in range(30):
        instance = scenario.draw_instance(seed)
        assert f"/draft/{instance.values['key']}" in instance.system
        assert f'"{instance.values["value"]}"' in instance.system
        assert instance.values["workspace_id"] in instance.user_text


@pytest.mark.parametrize("scenario", STATE, ids=lambda scenario: scenario.slug)
def test_draw_instance_published_wording_stays_version_1(scenario: Scenario) -> None:
    assert scenario.draw_instance(3, kind=PUBLISHED_WORDING) == scenarios.lookup_scenario(
        scenario.slug, 1
    ).draw_instance(3, kind=PUBLISHED_WORDING)
    assert scenario.draw_instance(3, kind=PUBLISHED_WORDING).version == 1
