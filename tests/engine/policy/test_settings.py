import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.settings import KEYS, Policy, build_policy_json, describe_keys, resolve_policy
from toolbench.engine.tools.choice import ToolChoice

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "merging.json").read_text())

LAST_WRITE = st.fixed_dictionaries(
    {},
    optional={
        "tool_use_mode": st.sampled_from(["enforced", "relaxed", "off", None]),
        "tool_failure_policy": st.sampled_from(["fatal", "tolerated"]),
        "max_turns": st.integers(1, 50),
        "max_tool_calls_per_turn": st.none() | st.integers(1, 5),
        "fix_empty_final": st.booleans(),
        "tool_choice": st.sampled_from(["auto", "", "required"]),
    },
)


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["name"])
def test_resolve_policy_matches_golden_table(row: dict[str, Any]) -> None:
    resolved = resolve_policy([(name, patch) for name, patch in row["layers"]])
    policy_json = build_policy_json(resolved.policy)
    assert {name: policy_json[name] for name in row["policy"]} == row["policy"]
    assert {leaf: resolved.origins.get(leaf) for leaf in row.get("origins", {})} == row.get("origins", {})
    key_names = {leaf.split(".")[0].split("[")[0] for leaf in resolved.origins}
    assert key_names == set(KEYS), "every key has an origin"


def test_resolve_policy_without_layers_returns_engine_defaults() -> None:
    resolved = resolve_policy([])
    assert resolved.policy == Policy()
    assert set(resolved.origins.values()) == {"engine"}
    assert resolved.overridden == ()


def test_resolve_policy_reports_settings_replaced_by_later_layer() -> None:
    resolved = resolve_policy(
        [
            ("user", {"tool_use_mode": "enforced", "request_overrides": {"max_tokens": 900}, "tool_allowlist": "a,b"}),
            ("scenario", {"tool_use_mode": "disabled", "request_overrides": {"max_tokens": 32}, "tool_allowlist": []}),
        ]
    )
    overridden = [(o.key, o.layer, o.value, o.by_layer, o.by_value) for o in resolved.overridden]
    assert overridden == [
        ("tool_use_mode", "user", "enforced", "scenario", "disabled"),
        ("request_overrides.max_tokens", "user", 900, "scenario", 32),
        ("tool_allowlist", "user", ("a", "b"), "scenario", ()),
    ]


def test_resolve_policy_equal_setting_overrides_nothing() -> None:
    layers = [
        ("a", {"max_turns": 3, "request_overrides": {"n": 1}}),
        ("b", {"max_turns": 3, "request_overrides": {"n": 1}}),
    ]
    resolved = resolve_policy(layers)
    assert resolved.overridden == ()
    assert resolved.origins["max_turns"] == "b"


def test_resolve_policy_lists_every_error_with_layer_key_and_hint() -> None:
    with pytest.raises(PolicyError) as caught:
        resolve_policy(
            [("preset", {"tool_use_mode": "sometimes", "nonsense": 1}), ("user", {"max_turns": 0, "strict": "yes"})]
        )
    problems = {(p.layer, p.key): p.message for p in caught.value.problems}
    assert set(problems) == {
        ("preset", "tool_use_mode"),
        ("preset", "nonsense"),
        ("user", "max_turns"),
        ("user", "strict"),
    }
    assert "enforced, relaxed, disabled" in problems["preset", "tool_use_mode"]
    assert "max_turns" in problems["preset", "nonsense"]
    assert "1 or more" in problems["user", "max_turns"]
    assert "true or false" in problems["user", "strict"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_turns", True),
        ("max_turns", 2.0),
        ("max_turns", "3"),
        ("fallback_retry_count", -1),
        ("fix_empty_final", 1),
        ("tool_allowlist", {"a": 1}),
        ("tool_allowlist", [1]),
        ("request_overrides", []),
        ("request_overrides", {1: 2}),
        ("request_overrides", {"a": float("nan")}),
        ("request_overrides", {"a": object()}),
        ("tool_name_aliases", {"a": 1}),
        ("tool_use_mode", True),
        ("paths", ["telepathy"]),
        ("method", ["native"]),
        ("tool_choice", 7),
        ("tool_id_pattern", "[a"),
        ("tool_id_pattern", "a{9999999999}"),
    ],
)
def test_resolve_policy_refuses_value_of_wrong_type_or_range(key: str, value: Any) -> None:
    with pytest.raises(PolicyError):
        resolve_policy([("a", {key: value})])


def test_resolved_policy_shares_no_object_with_its_layers() -> None:
    patch: dict[str, Any] = {"request_overrides": {"provider": {"order": ["x"]}}}
    policy = resolve_policy([("a", patch)]).policy
    patch["request_overrides"]["provider"]["order"].append("y")
    assert policy.request_overrides == {"provider": {"order": ["x"]}}


def test_describe_keys_describes_every_policy_key() -> None:
    described = {row.name: row for row in describe_keys()}
    assert list(described) == list(Policy.__dataclass_fields__)
    assert all(row.doc and row.accepts and row.kind for row in described.values())
    assert described["tool_use_mode"].choices == ("enforced", "relaxed", "disabled")


def test_build_policy_json_resolves_to_equal_policy() -> None:
    policy = resolve_policy(
        [("a", {"tool_allowlist": "x,y", "request_overrides": {"top_k": 1}, "tool_use_mode": "must"})]
    ).policy
    assert resolve_policy([("stored", json.loads(json.dumps(build_policy_json(policy))))]).policy == policy


@settings(deadline=None, database=None, max_examples=60)
@given(LAST_WRITE, LAST_WRITE, LAST_WRITE)
def test_last_write_keys_are_associative(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    three_layers = resolve_policy([("a", a), ("b", b), ("c", c)]).policy
    assert (
        three_layers
        == resolve_policy([("ab", {**a, **b}), ("c", c)]).policy
        == resolve_policy([("a", a), ("bc", {**b, **c})]).policy
    )


PUBLISHED = json.loads((Path(__file__).parents[1] / "data" / "policy_keys.json").read_text())


def test_policy_keys_keep_their_published_defaults() -> None:
    """Keep defaults: a run stores its layers without them, so a new default would change stored runs."""
    defaults = build_policy_json(Policy())
    assert {name: defaults[name] for name in PUBLISHED} == {name: row["default"] for name, row in PUBLISHED.items()}


@pytest.mark.parametrize("name", [name for name, row in PUBLISHED.items() if "minimum" in row])
def test_integer_key_accepts_minimum_and_refuses_less(name: str) -> None:
    minimum = PUBLISHED[name]["minimum"]
    assert getattr(resolve_policy([("a", {name: minimum})]).policy, name) == minimum
    with pytest.raises(PolicyError, match=f"a whole number, {minimum} or more"):
        resolve_policy([("a", {name: minimum - 1})])


def test_describe_keys_lists_aliases_of_a_choice_if_any() -> None:
    described = {row.name: row.accepts for row in describe_keys()}
    assert described["tool_failure_policy"] == "one of fatal, tolerated"
    assert described["tool_use_mode"].startswith("one of enforced, relaxed, disabled (also 0, false,")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("required"), "required"),
        (ToolChoice.named("t"), {"type": "function", "function": {"name": "t"}}),
        ({"type": "auto"}, {"type": "auto"}),
        (" any ", "any"),
    ],
)
def test_tool_choice_is_stored_in_request_form(choice: Any, expected: Any) -> None:
    assert resolve_policy([("a", {"tool_choice": choice})]).policy.tool_choice == expected
