import pytest

from toolbench.engine.policy.settings import build_policy_json, resolve_policy
from toolbench.engine.tools.choice import ToolChoice, to_request_choice

REQUEST_FORMS = [
    (ToolChoice(), "auto"),
    (ToolChoice("none"), "none"),
    (ToolChoice("required"), "required"),
    (ToolChoice.named("ping"), {"type": "function", "function": {"name": "ping"}}),
]


@pytest.mark.parametrize(("choice", "request_form"), REQUEST_FORMS)
def test_to_request_choice_renders_each_of_four_choices(choice: ToolChoice, request_form: object) -> None:
    assert to_request_choice(choice) == request_form


@pytest.mark.parametrize(("choice", "request_form"), REQUEST_FORMS)
def test_resolve_policy_accepts_choice_and_its_request_form(choice: ToolChoice, request_form: object) -> None:
    policies = [
        resolve_policy([("test", {"tool_choice": tool_choice})]).policy for tool_choice in (choice, request_form)
    ]

    assert policies[0] == policies[1]
    assert build_policy_json(policies[0])["tool_choice"] == request_form


@pytest.mark.parametrize("request_form", ["any", "validated", {"type": "tool", "name": "ping"}])
def test_to_request_choice_keeps_vendor_value(request_form: str | dict[str, str]) -> None:
    assert to_request_choice(request_form) == request_form


def test_tool_choice_name_is_required_by_named_and_refused_otherwise() -> None:
    with pytest.raises(ValueError, match="belongs to the choice `named`"):
        ToolChoice("auto", "ping")
    with pytest.raises(ValueError, match="belongs to the choice `named`"):
        ToolChoice.named(" ")
    with pytest.raises(ValueError, match="not 'any'"):
        ToolChoice("any")  # type: ignore[arg-type]  # what a caller without a type checker may write
