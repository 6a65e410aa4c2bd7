"""Tests of few-shot sets."""

import json

from toolbench.evals import scenarios
from toolbench.evals.few_shot import load_sets


def test_few_shot_sets_are_solved_exchanges_about_other_cities() -> None:
    found = load_sets("weather")
    assert list(found) == ["weather-1"]
    messages = found["weather-1"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"] * 3
    shown = {
        json.loads(message["tool_calls"][0]["function"]["arguments"])["city"]
        for message in messages
        if "tool_calls" in message
    }
    asked = {scenarios.lookup_scenario("weather").draw_instance(seed).values["city"] for seed in range(200)}
    assert shown.isdisjoint(asked)
    assert load_sets("happy_path") == {}
