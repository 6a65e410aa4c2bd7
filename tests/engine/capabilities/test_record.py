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


def test_nothing_is_known_to_begin_with() -> None:
    assert Capabilities().get_known_values() == {}
    assert all(doc.endswith(".") for doc in DOCS.values())


@pytest.mark.parametrize("order", list(permutations((DECLARED, PROBED, MEASURED))))
def test_what_was_seen_beats_what_is_declared_in_whatever_order_it_is_told(order: tuple[CapabilityRecord, ...]) -> None:
    effective = merge_records(order)

    assert effective.capabilities.get_known_values() == {
        "supports_tool_use": False,
        "max_tools": 128,
        "json_stability": "low",
    }
    assert effective.origins["supports_tool_use"] is PROBED
    assert effective.origins["max_tools"] is DECLARED
    assert effective.overruled_records == {"supports_tool_use": (DECLARED,)}


def test_what_a_probe_could_not_tell_leaves_what_is_declared() -> None:
    assert merge_records((DECLARED, CapabilityRecord("probed", Capabilities()))).capabilities.supports_tool_use is True


def test_false_is_known_and_an_empty_list_is_known() -> None:
    said = Capabilities(supports_strict=False, constrained=())

    assert said.get_known_values() == {"supports_strict": False, "constrained": ()}


def test_a_person_declares_over_the_documentation() -> None:
    own = CapabilityRecord("declared", Capabilities(max_tools=12), "a person")

    assert merge_records((DECLARED, own)).capabilities.max_tools == 12


def test_a_record_is_read_back_as_it_was_written() -> None:
    said = Capabilities(supports_tool_use=False, constrained=("grammar",), max_tools=8, text_format="hermes")

    assert parse_capabilities(said.get_known_values()) == said
    assert parse_capabilities({"supports_tool_use": None}) == Capabilities()


@pytest.mark.parametrize(
    "patch", [{"supports_flight": True}, {"supports_strict": "yes"}, {"constrained": "grammar"}, {"max_tools": True}]
)
def test_a_record_that_makes_no_sense_is_refused_with_the_field_named(patch: dict[str, object]) -> None:
    with pytest.raises(CapabilitiesError, match=next(iter(patch))):
        parse_capabilities(patch)


@pytest.mark.parametrize(
    ("errors", "turns", "level"),
    [(0, 19, None), (0, 20, "high"), (2, 100, "high"), (3, 100, "medium"), (10, 100, "medium"), (11, 100, "low")],
)
def test_stability_is_a_share_of_turns_and_unknown_below_twenty(errors: int, turns: int, level: str | None) -> None:
    assert rate_json_stability(errors, turns) == level
