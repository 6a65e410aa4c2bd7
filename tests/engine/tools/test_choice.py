import pytest

from toolbench.engine.policy.settings import build_policy_json, resolve_policy
from toolbench.engine.tools.choice import ToolChoice, to_request_choice

SPELLED = [
    (ToolChoice(), "auto"),
    (ToolChoice("none"), "none"),
    (ToolChoice("required"), "required"),
    (ToolChoice.named("ping"), {"type": "function", "function": {"name": "ping"}}),
]


@pytest.mark.parametrize(("choice", "spelled"), SPELLED)
def test_each_of_the_four_choices_has_its_spelling(choice: ToolChoice, spelled: object) -> None:
    assert to_request_choice(choice) == spelled


@pytest.mark.parametrize(("choice", "spelled"), SPELLED)
def test_a_policy_takes_a_choice_as_a_value_and_as_it_is_spelled(choice: ToolChoice, spelled: object) -> None:
    policies = [resolve_policy([("test", {"tool_choice": given})]).policy for given in (choice, spelled)]

    assert policies[0] == policies[1]
    assert build_policy_json(policies[0])["tool_choice"] == spelled


@pytest.mark.parametrize("spelled", ["any", "validated", {"type": "tool", "name": "ping"}])
def test_a_vendors_own_word_stays_as_it_is(spelled: str | dict[str, str]) -> None:
    assert to_request_choice(spelled) == spelled


def test_a_name_belongs_to_named_and_only_to_it() -> None:
    with pytest.raises(ValueError, match="belongs to the choice `named`"):
        ToolChoice("auto", "ping")
    with pytest.raises(ValueError, match="belongs to the choice `named`"):
        ToolChoice.named(" ")
    with pytest.raises(ValueError, match="not 'any'"):
        ToolChoice("any")  # type: ignore[arg-type]  # what a caller without a type checker may write
