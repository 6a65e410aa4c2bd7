"""Check of the name under which an endpoint reads the reasoning effort.

An endpoint that reads a parameter refuses an invalid value in it; an endpoint that ignores it does not.
"""

from collections.abc import Mapping

from toolbench.engine.types import JsonObject
from toolbench.providers.probing.check_result import ProbeCheck, build_inconclusive
from toolbench.providers.probing.prober import Prober

MAX_ANSWER_TOKENS = 2048  # a thinking budget is at least 1,024 tokens and must be below the limit
_QUESTION: list[JsonObject] = [{"role": "user", "content": "Say hello."}]
_BUDGET_PAIR = (
    {"thinking": {"type": "enabled", "budget_tokens": "many"}},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}},
)

NonsensePair = tuple[JsonObject, JsonObject]  # fields with an invalid value, fields with a valid one
_PAIRS: Mapping[str, NonsensePair] = {
    "reasoning_effort": ({"reasoning_effort": "sideways"}, {"reasoning_effort": "low"}),
    "reasoning.effort": ({"reasoning": {"effort": "sideways"}}, {"reasoning": {"effort": "low"}}),
    "thinking.budget_tokens": _BUDGET_PAIR,
}
_MESSAGES_PAIRS: Mapping[str, NonsensePair] = {
    "output_config.effort": ({"output_config": {"effort": "sideways"}}, {"output_config": {"effort": "low"}}),
    "thinking.budget_tokens": _BUDGET_PAIR,
}


async def check_effort(prober: Prober) -> ProbeCheck:
    """Find the first name under which an invalid value is refused and a valid one accepted."""
    names = _MESSAGES_PAIRS if prober.uses_messages else _PAIRS
    numbers: tuple[int, ...] = ()
    passed_over = 0
    for name, (nonsense, sense) in names.items():
        odd = await prober.post({"messages": _QUESTION, **nonsense, prober.limit_name: MAX_ANSWER_TOKENS})
        numbers = (*numbers, odd.number)
        if odd.error is not None and not odd.refused:
            return build_inconclusive("effort", odd.error, numbers)
        passed_over += odd.error is None
        if not odd.refused:
            continue
        plain = await prober.post({"messages": _QUESTION, **sense, prober.limit_name: MAX_ANSWER_TOKENS})
        numbers = (*numbers, plain.number)
        if plain.error is None:
            message = f"{name} is read: nonsense in it is refused, sense is taken."
            return ProbeCheck("effort", "passed", message, {"effort_name": name}, numbers)
    if passed_over:
        message = "The effort is taken without effect: nonsense passes under every name that is not refused."
        return ProbeCheck("effort", "failed", message, {"ignores": ["reasoning_effort"]}, numbers)
    return ProbeCheck("effort", "failed", "The effort is refused under every name.", {}, numbers)
