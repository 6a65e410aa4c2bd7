from datetime import UTC, datetime
from itertools import permutations

import pytest

from toolbench.engine.capabilities.record import (
    DOCS,
    Capabilities,
    CapabilitiesError,
    CapabilityRecord,
    merge_records,
    parse_capabilities,
    rate_json_stability,
)

DECLARED = CapabilityRecord("declared", Capabilities(supports_tool_use=True, max_tools=128), "its documentation")
PROBED = CapabilityRecord("probed", Capabilities(supports_tool_use=False), "probe 7", datetime(2026, 11, 1, tzinfo=UTC))
MEASURED = CapabilityRecord(
    "measured", Capabilities(json_stability="low"), "140 turns", datetime(2026, 11, 2, tzinfo=UTC)
)


def test_capabilities_are_unknown_by_default_and_documented() -> None:
    assert Capabilities().get_known_values() == {}
    assert all(doc.endswith(".") for doc in DOCS.values())


@pytest.mark.parametrize("order", list(permutations((DECLARED, PROBED, MEASURED))))
def test_merge_records_prefers_observed_over_declared_in_any_order(order: tuple[CapabilityRecord, ...]) -> None:
    effective = merge_records(order)

    assert effective.capabilities.get_known_values() == {
        "supports_tool_use": False,
        "max_tools": 128,
        "json_stability": "low",
    }
    assert effective.origins["supports_tool_use"] is PROBED
    assert effective.origins["max_tools"] is DECLARED
    assert effective.overruled_records == {"supports_tool_use": (DECLARED,)}


def test_merge_records_inconclusive_probe_keeps_declared_value() -> None:
    assert merge_records((DECLARED, CapabilityRecord("probed", Capabilities()))).capabilities.supports_tool_use is True


def test_get_known_values_contains_false_and_empty_lists() -> None:
    capabilities = Capabilities(supports_strict=False, constrained=())

    assert capabilities.get_known_values() == {"supports_strict": False, "constrained": ()}


def test_merge_records_prefers_declaration_of_a_person() -> None:
    person_record = CapabilityRecord("declared", Capabilities(max_tools=12), "a person")

    assert merge_records((DECLARED, person_record)).capabilities.max_tools == 12


def test_parse_capabilities_restores_known_values() -> None:
    capabilities = Capabilities(supports_tool_use=False, constrained=("grammar",), max_tools=8, text_format="hermes")

    assert parse_capabilities(capabilities.get_known_values()) == capabilities
    assert parse_capabilities({"supports_tool_use": None}) == Capabilities()


@pytest.mark.parametrize(
    "patch", [{"supports_flight": True}, {"supports_strict": "yes"}, {"constrained": "grammar"}, {"max_tools": True}]
)
def test_parse_capabilities_error_names_invalid_field(patch: dict[str, object]) -> None:
    with pytest.raises(CapabilitiesError, match=next(iter(patch))):
        parse_capabilities(patch)


@pytest.mark.parametrize(
    ("errors", "turns", "level"),
    [(0, 19, None), (0, 20, "high"), (2, 100, "high"), (3, 100, "medium"), (10, 100, "medium"), (11, 100, "low")],
)
def test_rate_json_stability_is_unknown_below_twenty_turns(errors: int, turns: int, level: str | None) -> None:
    assert rate_json_stability(errors, turns) == level
