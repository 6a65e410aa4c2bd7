from typing import Any

import pytest

from tests.engine.scripted_model import TOOLS
from toolbench.engine.loop.refused_answers import CALLS_FROM_TEXT_TRANSFORM, parse_refused_answer
from toolbench.engine.loop.turn_setup import TurnSetup, prepare_turns
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.types import Turn

HEALED = {"response_transforms": [CALLS_FROM_TEXT_TRANSFORM]}


def setup(**policy: Any) -> TurnSetup:
    resolved = resolve_policy([("test", policy)]).policy
    return prepare_turns("m", resolved, system="", tools=TOOLS, options={}, seed=None)


@pytest.mark.parametrize(
    "text",
    [
        '<function=state_patch{"ops": []}</function>',
        'state_patch{"ops": []}</function>',
        '{"name": "state_patch", "arguments": {"ops": []}}',
        '<tool_call>\n{"name": "state_patch", "arguments": {"ops": []}}\n</tool_call>',
    ],
)
def test_a_quoted_call_is_a_turn_under_the_preset_and_a_hint_without_it(text: str) -> None:
    turn = parse_refused_answer(setup(**HEALED), text, has_tools=True)
    assert isinstance(turn, Turn)
    assert [(call.name, call.arguments) for call in turn.calls] == [("state_patch", '{"ops":[]}')]
    assert "answer_refused" in [finding.code for finding in turn.findings]
    assert {change.name for change in turn.changes} == {CALLS_FROM_TEXT_TRANSFORM}
    hint = parse_refused_answer(setup(), text, has_tools=True)
    assert isinstance(hint, str)
    assert "state_patch" in hint


@pytest.mark.parametrize("text", ["", "I cannot do that.", '{"name": "unknown", "arguments": {}}'])
def test_a_quotation_without_a_call_stays_an_error(text: str) -> None:
    assert parse_refused_answer(setup(**HEALED), text, has_tools=True) == ""


def test_nothing_is_read_where_no_tools_were_sent() -> None:
    assert parse_refused_answer(setup(**HEALED), '{"name": "state_get", "arguments": {}}', has_tools=False) == ""


@pytest.mark.parametrize("text", ['state_patch {"ops": []}', '<function=state_patch{"ops": ["cut'])
def test_a_call_that_even_the_preset_cannot_read_is_said_to_be_lost(text: str) -> None:
    hint = parse_refused_answer(setup(**HEALED), text, has_tools=True)
    assert isinstance(hint, str)
    assert hint.endswith("that cannot be read.")


def test_a_call_the_preset_would_read_is_not_said_to_be_lost() -> None:
    hint = parse_refused_answer(setup(), '{"name": "state_patch", "arguments": {"ops": []}}', has_tools=True)
    assert isinstance(hint, str)
    assert hint.endswith(f"the transform {CALLS_FROM_TEXT_TRANSFORM} reads such answers.")


def test_a_call_that_broke_off_is_lost_without_the_preset_too() -> None:
    hint = parse_refused_answer(setup(), '<function=state_patch{"ops": ["cut', has_tools=True)
    assert isinstance(hint, str)
    assert hint.endswith("that cannot be read.")
