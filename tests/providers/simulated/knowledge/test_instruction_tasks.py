"""Tests of the tasks that a simulated model knows by the sentences of their instructions."""

import pytest

from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Scenario
from toolbench.providers.simulated.knowledge.instruction_tasks import find_known_messages

STATE = [
    version for scenario in scenarios.group_scenarios()["tools"] for version in scenarios.list_versions(scenario.slug)
]


def build_expected_messages(instance: Instance) -> list[list[tuple[str, object]]]:
    """Return tool and value of each call, message by message, from the scenario's table."""
    values = instance.values
    paths = {
        "get": ("state_get", None),
        "patch": ("state_patch", (f"/draft/{values['key']}", values["value"])),
        "wrong_patch": ("state_patch", (f"/draft/{values['wrong_key']}", "wrong on purpose")),
        "long_patch": ("state_patch", (f"/draft/{values['key']}", values["long_text"])),
    }
    messages = getattr(scenarios.lookup_scenario(instance.scenario), "messages")  # noqa: B009
    return [[paths[name.removesuffix("_implicit")] for name in message.split("+")] for message in messages]


@pytest.mark.parametrize("scenario", STATE, ids=lambda scenario: f"{scenario.slug}-{scenario.version}")
@pytest.mark.parametrize("kind", [PUBLISHED_WORDING, DRAWN])
def test_find_known_messages_knows_every_wording_of_a_state_scenario(scenario: Scenario, kind: str) -> None:
    for seed in range(60):
        instance = scenario.draw_instance(seed, kind=kind)
        task = instance.system.partition("\n\n")[0]  # without the examples of version 1
        found = find_known_messages(task, instance.values["workspace_id"])
        calls = [
            [(tool, _change(arguments) if tool == "state_patch" else None) for tool, arguments in message]
            for message in found
        ]
        assert calls == build_expected_messages(instance), task
        implicit = instance.scenario == "missing_workspace_id"
        given = {arguments.get("workspace_id") for message in found for _, arguments in message}
        assert given == {None if implicit else instance.values["workspace_id"]}


def test_find_known_messages_without_an_id_omits_it() -> None:
    ((call,),) = find_known_messages('Set /draft/motto to "calm $5" and change nothing else.', "")
    assert call == (
        "state_patch",
        {"request_id": "change-1", "ops": [{"op": "set", "path": "/draft/motto", "value": "calm $5"}]},
    )


def test_find_known_messages_of_other_instructions_is_empty() -> None:
    assert find_known_messages("Set /draft/motto to something pleasant.", "w-1") == ()
    assert find_known_messages("You answer questions about the weather.", "") == ()


def test_find_known_messages_with_an_unnamed_path_is_empty() -> None:
    task = 'Nothing is in /draft/ yet.\nOn ARGUMENTS_TOO_LARGE, repeat the call with "calm" as its value.'
    assert find_known_messages(task, "w-1") == ()


def _change(arguments: JsonObject) -> tuple[str, str]:
    (operation,) = arguments["ops"]
    return operation["path"], operation["value"]
