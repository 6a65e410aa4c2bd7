"""Tokens and cost, read from answers and summed."""

from typing import Any

from toolbench.engine.bounds import MAX_COST, MAX_TOKENS, parse_cost, parse_count
from toolbench.engine.strict_json import get_object
from toolbench.engine.types import Finding, JsonObject, Usage
from toolbench.engine.wire_formats.unrepresentable_numbers import NOT_A_NUMBER, UnrepresentableNumber

IMPLAUSIBLE = "usage_implausible"
_TOKENS = f"tokens are whole numbers from 0 to {MAX_TOKENS:,}"
_COST = f"a cost is a number from 0 to {MAX_COST:,}"
_OBJECT = "usage is an object"
_AT_ROOT = ("tokens_evaluated", "tokens_predicted")  # of llama.cpp, which has no usage object
_MAX_NUMBER = 10**15  # a number up to here is quoted in a finding
_OVERFLOW_TEXT = "a number beyond all bounds"


class UsageReader:
    """Reads the figures of one usage object within their bounds.

    Attributes:
        findings: findings for implausible figures, which count as unknown; null and missing figures have none.
        present: whether there is a usage object.
    """

    def __init__(self, given: Any) -> None:
        self.findings: list[Finding] = []
        self._given: JsonObject = get_object(given)
        self.present = isinstance(given, dict)
        if given is not None and not self.present:
            self._note("$.usage", given, _OBJECT)

    def tokens(self, *names: str) -> int | None:
        """Return the first plausible figure under `names`; a name may be `object.member`."""
        for name in names:
            value = self._value(name)
            if (count := parse_count(value)) is not None:
                return count
            if value is not None:
                self._note(_build_path(name), value, _TOKENS)
        return None

    def tokens_sum(self, *names: str) -> int | None:
        """Return the sum of the figures under all `names`; None where none is there or one is implausible."""
        noted = len(self.findings)
        known = [count for name in names if (count := self.tokens(name)) is not None]
        if len(self.findings) > noted or not known:
            return None
        if (total := parse_count(sum(known))) is None:
            self._note("$.usage", sum(known), _TOKENS)
        return total

    def cost(self, name: str) -> float | None:
        """Return the US dollars under `name`."""
        value = self._value(name)
        cost = parse_cost(value)
        if cost is None and value is not None:
            self._note(_build_path(name), value, _COST)
        return cost

    def _value(self, name: str) -> Any:
        holder, _, member = name.rpartition(".")
        found = self._given.get(holder) if holder else self._given
        return found.get(member) if isinstance(found, dict) else None

    def _note(self, path: str, value: Any, rule: str) -> None:
        message = (
            f"The answer's usage is implausible: {path} is {_describe_value(value)}, but {rule}. It counts as unknown."
        )
        self.findings.append(Finding(IMPLAUSIBLE, message, path))


def find_usage(root: JsonObject) -> Any:
    """Return the usage object of an answer or event; Groq's is in `x_groq`."""
    groq = root.get("x_groq")
    return root.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None) or root.get("usage")


def read_usage(given: Any) -> tuple[Usage | None, tuple[Finding, ...]]:
    """Return the usage of an answer in OpenAI's format, and findings for implausible figures; None without usage."""
    reader = UsageReader(given)
    usage = Usage(
        input_tokens=reader.tokens("prompt_tokens", "input_tokens", "tokens_evaluated"),
        output_tokens=reader.tokens("completion_tokens", "output_tokens", "tokens_predicted"),
        cached_tokens=reader.tokens("prompt_tokens_details.cached_tokens"),
        reasoning_tokens=reader.tokens("completion_tokens_details.reasoning_tokens"),
        cost=reader.cost("cost"),
    )
    return usage if reader.present else None, tuple(reader.findings)


def usage_to_json(usage: Usage | None) -> JsonObject | None:
    """Return the usage as JSON; None for none."""
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
    """Return the sum; figures that neither side has stay None."""
    if more is None:
        return total
    return Usage(
        input_tokens=_add_optional(total.input_tokens, more.input_tokens),
        output_tokens=_add_optional(total.output_tokens, more.output_tokens),
        cached_tokens=_add_optional(total.cached_tokens, more.cached_tokens),
        reasoning_tokens=_add_optional(total.reasoning_tokens, more.reasoning_tokens),
        cost=_add_optional(total.cost, more.cost),
    )


def _add_optional(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _build_path(name: str) -> str:
    return f"$.{name}" if name in _AT_ROOT else f"$.usage.{name}"


def _describe_value(value: Any) -> str:
    """Return a description of the value that does not quote text of the endpoint."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if -_MAX_NUMBER < value < _MAX_NUMBER else _OVERFLOW_TEXT
    if isinstance(value, UnrepresentableNumber):
        return "not a number" if value == NOT_A_NUMBER else _OVERFLOW_TEXT
    return "a text" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
