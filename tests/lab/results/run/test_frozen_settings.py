"""Frozen settings of a run with the layer of each value."""

import pytest

from tests.factories import make_cell, make_config, make_run
from toolbench.lab.results.run.frozen_settings import get_frozen_settings

pytestmark = pytest.mark.django_db


def test_frozen_settings_name_the_layer_of_each_key() -> None:
    run = make_run()
    layers = [["provider default", {"max_turns": 9}], ["preset x", {"max_tool_args_bytes": 1000}]]
    make_cell(make_config(run, layers=layers), "long_arguments_guard")
    frozen = get_frozen_settings(run.pk, scenario="long_arguments_guard")
    assert frozen is not None
    keys = {key.key: key for key in frozen.chosen}
    assert (keys["max_turns"].value, keys["max_turns"].origin) == (9, "provider default")
    assert keys["max_tool_args_bytes"].value == 300
    assert "long_arguments_guard" in keys["max_tool_args_bytes"].origin


def test_frozen_settings_key_with_a_dot_keeps_its_value() -> None:
    layers = [["run", {"request_overrides": {"vendor.mode": "fast", "nested": {"a.b": 1}}}]]
    frozen = get_frozen_settings(make_config(make_run(), layers=layers).run_id)
    assert frozen is not None
    values = {key.key: key.value for key in frozen.chosen}
    assert values == {"request_overrides.vendor.mode": "fast", "request_overrides.nested.a.b": 1}


def test_frozen_settings_with_unknown_keys_are_shown_unchanged() -> None:
    config = make_config(make_run(), layers=[["profile", {"no_such_key": 1}]])
    frozen = get_frozen_settings(config.run_id)
    assert frozen is not None
    assert [(key.key, key.value, key.origin) for key in frozen.chosen] == [("no_such_key", 1, "profile")]


@pytest.mark.parametrize("config", ["", "x", "9" * 30, "424242"])
def test_frozen_settings_of_an_unknown_configuration_show_the_first(config: str) -> None:
    first = make_config(make_run())
    make_config(first.run)
    frozen = get_frozen_settings(first.run_id, config=config)
    assert frozen is not None
    assert frozen.config == first


def test_frozen_settings_of_a_run_without_configurations_are_none() -> None:
    assert get_frozen_settings(make_run().pk) is None


def test_frozen_settings_of_a_scenario_include_its_tool_lint() -> None:
    run = make_run()
    make_config(run)
    chosen, bare = (get_frozen_settings(run.pk, scenario=slug) for slug in ("happy_path", ""))
    assert chosen is not None
    assert bare is not None
    assert [finding.code for finding in chosen.lint] == ["required_empty"]
    assert bare.lint == ()
