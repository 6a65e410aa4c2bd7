from typing import Any

import pytest

from tests.engine.scripted_model import TOOLS
from toolbench.engine.loop.refused_answers import CALLS_FROM_TEXT_TRANSFORM, parse_refused_answer
from toolbench.engine.loop.turn_setup import TurnSetup, prepare_turns
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.types import Turn

WITH_TRANSFORM = {"response_transforms": [CALLS_FROM_TEXT_TRANSFORM]}


def build_setup(**policy: Any) -> TurnSetup:
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
def test_quoted_call_is_a_turn_with_preset_and_a_hint_without(text: str) -> None:
    turn = parse_refused_answer(build_setup(**WITH_TRANSFORM), text, has_tools=True)
    assert isinstance(turn, Turn)
    assert [(call.name, call.arguments) for call in turn.calls] == [("state_patch", '{"ops":[]}')]
    assert "answer_refused" in [finding.code for finding in turn.findings]
    assert {change.name for change in turn.changes} == {CALLS_FROM_TEXT_TRANSFORM}
    hint = parse_refused_answer(build_setup(), text, has_tools=True)
    assert isinstance(hint, str)
    assert "state_patch" in hint


@pytest.mark.parametrize("text", ["", "I cannot do that.", '{"name": "unknown", "arguments": {}}'])
def test_quotation_without_known_call_gives_empty_hint(text: str) -> None:
    assert parse_refused_answer(build_setup(**WITH_TRANSFORM), text, has_tools=True) == ""


def test_parse_refused_answer_without_tools_reads_no_call() -> None:
    assert (
        parse_refused_answer(build_setup(**WITH_TRANSFORM), '{"name": "state_get", "arguments": {}}', has_tools=False)
        == ""
    )


@pytest.mark.parametrize("text", ['state_patch {"ops": []}', '<function=state_patch{"ops": ["cut'])
def test_unreadable_call_with_preset_gives_hint_that_it_is_unreadable(text: str) -> None:
    hint = parse_refused_answer(build_setup(**WITH_TRANSFORM), text, has_tools=True)
    assert isinstance(hint, str)
    assert hint.endswith("that cannot be read.")


def test_readable_call_without_preset_gives_hint_of_transform() -> None:
    hint = parse_refused_answer(build_setup(), '{"name": "state_patch", "arguments": {"ops": []}}', has_tools=True)
    assert isinstance(hint, str)
    assert hint.endswith(f"the transform {CALLS_FROM_TEXT_TRANSFORM} reads such answers.")


def test_truncated_call_without_preset_gives_hint_that_it_is_unreadable() -> None:
    hint = parse_refused_answer(build_setup(), '<function=state_patch{"ops": ["cut', has_tools=True)
    assert isinstance(hint, str)
    assert hint.endswith("that cannot be read.")
