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
def test_layers_merge_by_the_golden_table(row: dict[str, Any]) -> None:
    resolved = resolve_policy([(name, patch) for name, patch in row["layers"]])
    shown = build_policy_json(resolved.policy)
    assert {name: shown[name] for name in row["policy"]} == row["policy"]
    assert {leaf: resolved.origins.get(leaf) for leaf in row.get("origins", {})} == row.get("origins", {})
    named = {leaf.split(".")[0].split("[")[0] for leaf in resolved.origins}
    assert named == set(KEYS), "every key has an origin"


def test_without_layers_everything_is_the_engines_default() -> None:
    resolved = resolve_policy([])
    assert resolved.policy == Policy()
    assert set(resolved.origins.values()) == {"engine"}
    assert resolved.overridden == ()


def test_what_a_later_layer_took_from_an_earlier_one_is_told() -> None:
    resolved = resolve_policy(
        [
            ("user", {"tool_use_mode": "enforced", "request_overrides": {"max_tokens": 900}, "tool_allowlist": "a,b"}),
            ("scenario", {"tool_use_mode": "disabled", "request_overrides": {"max_tokens": 32}, "tool_allowlist": []}),
        ]
    )
    told = [(o.key, o.layer, o.value, o.by_layer, o.by_value) for o in resolved.overridden]
    assert told == [
        ("tool_use_mode", "user", "enforced", "scenario", "disabled"),
        ("request_overrides.max_tokens", "user", 900, "scenario", 32),
        ("tool_allowlist", "user", ("a", "b"), "scenario", ()),
    ]


def test_saying_the_same_again_overrides_nothing() -> None:
    layers = [
        ("a", {"max_turns": 3, "request_overrides": {"n": 1}}),
        ("b", {"max_turns": 3, "request_overrides": {"n": 1}}),
    ]
    resolved = resolve_policy(layers)
    assert resolved.overridden == ()
    assert resolved.origins["max_turns"] == "b"


def test_all_errors_are_listed_each_with_layer_key_and_what_is_allowed() -> None:
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
    ],
)
def test_a_bad_value_is_refused(key: str, value: Any) -> None:
    with pytest.raises(PolicyError):
        resolve_policy([("a", {key: value})])


def test_a_policy_shares_nothing_with_its_layers() -> None:
    patch: dict[str, Any] = {"request_overrides": {"provider": {"order": ["x"]}}}
    policy = resolve_policy([("a", patch)]).policy
    patch["request_overrides"]["provider"]["order"].append("y")
    assert policy.request_overrides == {"provider": {"order": ["x"]}}


def test_every_key_is_described() -> None:
    described = {row.name: row for row in describe_keys()}
    assert list(described) == list(Policy.__dataclass_fields__)
    assert all(row.doc and row.accepts and row.kind for row in described.values())
    assert described["tool_use_mode"].choices == ("enforced", "relaxed", "disabled")


def test_a_policy_survives_being_written_and_resolved_again() -> None:
    policy = resolve_policy(
        [("a", {"tool_allowlist": "x,y", "request_overrides": {"top_k": 1}, "tool_use_mode": "must"})]
    ).policy
    assert resolve_policy([("stored", json.loads(json.dumps(build_policy_json(policy))))]).policy == policy


@settings(deadline=None, database=None, max_examples=60)
@given(LAST_WRITE, LAST_WRITE, LAST_WRITE)
def test_last_write_keys_are_associative(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    apart = resolve_policy([("a", a), ("b", b), ("c", c)]).policy
    assert (
        apart
        == resolve_policy([("ab", {**a, **b}), ("c", c)]).policy
        == resolve_policy([("a", a), ("bc", {**b, **c})]).policy
    )


PUBLISHED = json.loads((Path(__file__).parents[1] / "data" / "policy_keys.json").read_text())


def test_keys_keep_the_defaults_they_were_published_with() -> None:
    """A run stores its layers and not the engine's defaults: with another default it would be read as another run."""
    defaults = build_policy_json(Policy())
    assert {name: defaults[name] for name in PUBLISHED} == {name: row["default"] for name, row in PUBLISHED.items()}


@pytest.mark.parametrize("name", [name for name, row in PUBLISHED.items() if "minimum" in row])
def test_a_whole_number_is_accepted_from_its_minimum_on(name: str) -> None:
    least = PUBLISHED[name]["minimum"]
    assert getattr(resolve_policy([("a", {name: least})]).policy, name) == least
    with pytest.raises(PolicyError, match=f"a whole number, {least} or more"):
        resolve_policy([("a", {name: least - 1})])


def test_a_choice_names_its_aliases_where_it_has_any() -> None:
    described = {row.name: row.accepts for row in describe_keys()}
    assert described["tool_failure_policy"] == "one of fatal, tolerated"
    assert described["tool_use_mode"].startswith("one of enforced, relaxed, disabled (also 0, false,")


@pytest.mark.parametrize(
    ("choice", "held"),
    [
        (ToolChoice("required"), "required"),
        (ToolChoice.named("t"), {"type": "function", "function": {"name": "t"}}),
        ({"type": "auto"}, {"type": "auto"}),
        (" any ", "any"),
    ],
)
def test_a_tool_choice_is_held_as_requests_spell_it(choice: Any, held: Any) -> None:
    assert resolve_policy([("a", {"tool_choice": choice})]).policy.tool_choice == held
