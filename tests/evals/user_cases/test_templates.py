"""Tests of templates for answers: the two placeholders, the limit of size, and refusals."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.evals.user_cases.simulated_tools import SimulatedTools
from toolbench.evals.user_cases.templates import (
    MAX_VALUE_CHARACTERS,
    TemplateError,
    iter_template_problems,
    render_template,
)

STATE = {"orders": {"17": {"status": "open", "items": [1, 2]}}, "name": "Ada", "a/b": None}
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("template", "answer"),
    [
        ("{arguments.order}", 17),
        ("order {arguments.order} of {state:/name}", "order 17 of Ada"),
        ({"all": "{state:/orders/17}", "keep": 1}, {"all": {"status": "open", "items": [1, 2]}, "keep": 1}),
        (["{state:/orders/17/items/1}", "{state:/a~1b}"], [2, None]),
        ("items: {state:/orders/17/items}", "items: [1, 2]"),
        ({"{arguments.order}": True}, {"{arguments.order}": True}),
        ("$order and {state:/name}", "$order and Ada"),
    ],
)
def test_render_template_substitutes_placeholders_only(template: Any, answer: Any) -> None:
    assert not list(iter_template_problems(template))
    assert render_template(template, {"order": 17}, STATE) == answer


@pytest.mark.parametrize(
    "template",
    [
        "{", "}", "{}", "{arguments}", "{arguments.a.b}", "{arguments.a + 1}", "{arguments.__class__.x}", "{state:}",
        "{state:name}", "{state:/a{arguments.x}}", "{{arguments.x}}", "{arguments[0]}", "{state:/a~2}", "{0.real}",
        ["fine", {"deep": "{env.HOME}"}],
    ],
)  # fmt: skip
def test_iter_template_problems_refuses_anything_else_in_braces(template: Any) -> None:
    [problem] = list(iter_template_problems(template))[:1]
    assert "cannot be substituted" in problem or "is not a JSON Pointer" in problem


@pytest.mark.parametrize(
    ("template", "code", "message"),
    [
        ("{arguments.nobody}", "ARGUMENT_ERROR", "the argument nobody is missing"),
        ("{state:/orders/18/status}", "STATE_NOT_FOUND", "nothing is at /orders/18/status"),
        ("{state:/orders/17/items/-}", "STATE_NOT_FOUND", "nothing is at /orders/17/items/-"),
        ("{state:/name/x}", "STATE_NOT_FOUND", "nothing is at /name/x"),
    ],
)
def test_simulated_tools_template_with_missing_value_changes_no_state(template: str, code: str, message: str) -> None:
    tools = SimulatedTools({"f": {"template": template, "set": {"/name": "changed"}}}, STATE)
    answer: Any = tools.call("f", {}, "")
    assert (answer["ok"], answer["errors"]) == (False, [{"code": code, "message": message}])
    assert tools.snapshot() == STATE


def test_render_template_refuses_an_answer_over_the_limit() -> None:
    state = {"x": "x" * 1000}
    assert len(render_template("{state:/x}" * 40, {}, state)) == 40_000
    with pytest.raises(TemplateError, match=f"more than {MAX_VALUE_CHARACTERS} characters"):
        render_template(["{state:/x}"] * 60, {}, state)


def test_simulated_tools_template_uses_the_state_after_its_call() -> None:
    entry = {"template": "now {state:/status}", "set": {"/status": "$status"}}
    assert SimulatedTools({"f": entry}, {}).call("f", {"status": "closed"}, "") == "now closed"


@given(PLAIN)
def test_render_template_of_random_value_is_refused_or_unchanged(template: Any) -> None:
    if list(iter_template_problems(template)):
        return
    assert json.dumps(render_template(template, {}, {})) == json.dumps(template)


@given(st.text(alphabet="{}arguments.state:/~x0 ", max_size=40), PLAIN)
def test_render_template_of_accepted_text_renders_or_raises(text: str, value: Any) -> None:
    problems = list(iter_template_problems(text))
    assert all(problems)
    if problems:
        return
    with contextlib.suppress(TemplateError):
        json.dumps(render_template(text, {"x": value}, {"x": value}))
