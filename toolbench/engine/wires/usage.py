"""Tokens and cost: read from an answer, and summed."""

from typing import Any

from toolbench.engine.messages import JsonObject, Usage


def read_usage(given: Any) -> Usage | None:
    """The usage object of an OpenAI-shaped answer; None when there is none."""
    if not isinstance(given, dict):
        return None
    prompt, completion = given.get("prompt_tokens_details"), given.get("completion_tokens_details")
    return Usage(
        input_tokens=_count(given, "prompt_tokens", "input_tokens"),
        output_tokens=_count(given, "completion_tokens", "output_tokens"),
        cached_tokens=_count(prompt, "cached_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
        cost=_cost(given.get("cost")),
    )


def usage_json(usage: Usage | None) -> JsonObject | None:
    """The usage as plain JSON; None when there is none."""
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost": usage.cost,
    }


def add_usage(total: Usage, more: Usage | None) -> Usage:
    """The sum; what neither side says stays None."""
    if more is None:
        return total
    return Usage(
        input_tokens=_sum(total.input_tokens, more.input_tokens),
        output_tokens=_sum(total.output_tokens, more.output_tokens),
        cached_tokens=_sum(total.cached_tokens, more.cached_tokens),
        reasoning_tokens=_sum(total.reasoning_tokens, more.reasoning_tokens),
        cost=_sum(total.cost, more.cost),
    )


def _sum(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _count(given: Any, *names: str) -> int | None:
    if not isinstance(given, dict):
        return None
    for name in names:
        value = given.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _cost(value: Any) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12:
        return float(value)
    return None
