import json
from importlib import resources

from toolbench.engine.capabilities.declared import find_declared_capabilities

FACTS = resources.files("toolbench.engine").joinpath("data", "capabilities.json").read_text("utf-8")
TEMPLATES = tuple(json.loads(FACTS)["providers"])


def test_what_a_provider_declares_is_dated_and_names_its_source() -> None:
    for template in TEMPLATES:
        told = find_declared_capabilities(template)
        assert told is not None
        assert told.capabilities.get_known_values()
        assert told.at is not None
        assert told.who


def test_tool_use_is_never_declared_for_a_whole_provider() -> None:
    assert all(
        told.capabilities.supports_tool_use is None for told in map(find_declared_capabilities, TEMPLATES) if told
    )


def test_who_says_nothing_declares_nothing() -> None:
    assert find_declared_capabilities("groq") is None
    assert find_declared_capabilities("") is None
