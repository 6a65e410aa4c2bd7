"""Check of the parameter in which an endpoint reads the reasoning effort.

An endpoint that reads a parameter refuses an invalid value in it; an endpoint that ignores the parameter does not.
"""

from collections.abc import Mapping

from toolbench.engine.types import JsonObject
from toolbench.providers.probing.check_result import ProbeCheck, build_inconclusive
from toolbench.providers.probing.prober import Prober

MAX_ANSWER_TOKENS = 2048  # must be above the thinking budget, which is at least 1,024 tokens
_QUESTION: list[JsonObject] = [{"role": "user", "content": "Say hello."}]
_BUDGET_PAIR = (
    {"thinking": {"type": "enabled", "budget_tokens": "many"}},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}},
)

ValuePair = tuple[JsonObject, JsonObject]  # fields with an invalid value, fields with a valid one
# By parameter, in the order tried.
_PAIRS: Mapping[str, ValuePair] = {
    "reasoning_effort": ({"reasoning_effort": "sideways"}, {"reasoning_effort": "low"}),
    "reasoning.effort": ({"reasoning": {"effort": "sideways"}}, {"reasoning": {"effort": "low"}}),
    "thinking.budget_tokens": _BUDGET_PAIR,
}
_MESSAGES_PAIRS: Mapping[str, ValuePair] = {
    "output_config.effort": ({"output_config": {"effort": "sideways"}}, {"output_config": {"effort": "low"}}),
    "thinking.budget_tokens": _BUDGET_PAIR,
}


async def check_effort(prober: Prober) -> ProbeCheck:
    """Find the first parameter in which the endpoint refuses an invalid value and accepts a valid one."""
    pairs = _MESSAGES_PAIRS if prober.uses_messages else _PAIRS
    exchange_numbers: tuple[int, ...] = ()
    ignored_count = 0
    for name, (invalid_fields, valid_fields) in pairs.items():
        invalid = await prober.post({"messages": _QUESTION, **invalid_fields, prober.limit_name: MAX_ANSWER_TOKENS})
        exchange_numbers = (*exchange_numbers, invalid.exchange_number)
        if invalid.error is not None and not invalid.is_refused:
            return build_inconclusive("effort", invalid.error, exchange_numbers)
        ignored_count += invalid.error is None
        if not invalid.is_refused:
            continue
        valid = await prober.post({"messages": _QUESTION, **valid_fields, prober.limit_name: MAX_ANSWER_TOKENS})
        exchange_numbers = (*exchange_numbers, valid.exchange_number)
        if valid.error is None:
            message = f"The endpoint reads {name}: it refuses an invalid value and accepts a valid one."
            return ProbeCheck("effort", "passed", message, {"effort_name": name}, exchange_numbers)
    if ignored_count:
        message = "The endpoint ignores the effort: it accepts invalid values."
        return ProbeCheck("effort", "failed", message, {"ignores": ["reasoning_effort"]}, exchange_numbers)
    return ProbeCheck("effort", "failed", "The endpoint refuses every parameter for the effort.", {}, exchange_numbers)
