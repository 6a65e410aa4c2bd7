"""Tests of few-shot sets."""

import json

from toolbench.evals import scenarios
from toolbench.evals.few_shot import load_sets


def test_load_sets_of_weather_are_exchanges_about_other_cities() -> None:
    sets_by_name = load_sets("weather")
    assert list(sets_by_name) == ["weather-1"]
    messages = sets_by_name["weather-1"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"] * 3
    shown_cities = {
        json.loads(message["tool_calls"][0]["function"]["arguments"])["city"]
        for message in messages
        if "tool_calls" in message
    }
    drawn_cities = {scenarios.lookup_scenario("weather").draw_instance(seed).values["city"] for seed in range(200)}
    assert shown_cities.isdisjoint(drawn_cities)
    assert load_sets("happy_path") == {}
