import json
from importlib import resources

from toolbench.engine.capabilities.declared import find_declared_capabilities

FACTS = resources.files("toolbench.engine").joinpath("data", "capabilities.json").read_text("utf-8")
TEMPLATES = tuple(json.loads(FACTS)["providers"])


def test_declared_capabilities_of_every_template_have_date_and_source() -> None:
    for template in TEMPLATES:
        record = find_declared_capabilities(template)
        assert record is not None
        assert record.capabilities.get_known_values()
        assert record.at is not None
        assert record.who


def test_declared_capabilities_never_contain_tool_use() -> None:
    records = [record for record in map(find_declared_capabilities, TEMPLATES) if record]
    assert {record.capabilities.supports_tool_use for record in records} == {None}


def test_find_declared_capabilities_of_other_template_returns_none() -> None:
    assert find_declared_capabilities("groq") is None
    assert find_declared_capabilities("") is None
