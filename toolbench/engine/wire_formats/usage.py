"""Reading of tokens and cost from answers, and their sums."""

from typing import Any

from toolbench.engine.bounds import MAX_COST, MAX_TOKENS, parse_cost, parse_count
from toolbench.engine.strict_json import get_object
from toolbench.engine.types import Finding, JsonObject, Usage
from toolbench.engine.wire_formats.unrepresentable_numbers import NOT_A_NUMBER, UnrepresentableNumber

IMPLAUSIBLE = "usage_implausible"
_TOKENS = f"tokens are whole numbers from 0 to {MAX_TOKENS:,}"
_COST = f"a cost is a number from 0 to {MAX_COST:,}"
_OBJECT = "usage is an object"
_ROOT_FIELDS = ("tokens_evaluated", "tokens_predicted")  # fields of llama.cpp, which sends no `usage`
_MAX_NUMBER = 10**15  # findings quote only numbers below this
_OVERFLOW_TEXT = "a number beyond all bounds"


class UsageReader:
    """Reader of the figures of one usage object, within their bounds.

    Attributes:
        findings: findings for implausible figures, which count as unknown; null and missing figures have none.
        present: whether there is a usage object.
    """

    def __init__(self, reported_usage: Any) -> None:
        self.findings: list[Finding] = []
        self._reported_usage: JsonObject = get_object(reported_usage)
        self.present = isinstance(reported_usage, dict)
        if reported_usage is not None and not self.present:
            self._add_finding("$.usage", reported_usage, _OBJECT)

    def tokens(self, *names: str) -> int | None:
        """Return the first plausible figure under `names`; None if there is none. A name may be `object.member`."""
        for name in names:
            value = self._find_value(name)
            if (count := parse_count(value)) is not None:
                return count
            if value is not None:
                self._add_finding(_build_path(name), value, _TOKENS)
        return None

    def tokens_sum(self, *names: str) -> int | None:
        """Return the sum of the figures under all `names`; None if all are missing or one is implausible."""
        earlier_findings = len(self.findings)
        counts = [count for name in names if (count := self.tokens(name)) is not None]
        if len(self.findings) > earlier_findings or not counts:
            return None
        if (total := parse_count(sum(counts))) is None:
            self._add_finding("$.usage", sum(counts), _TOKENS)
        return total

    def cost(self, name: str) -> float | None:
        """Return the US dollars under `name`; None if they are missing or implausible."""
        value = self._find_value(name)
        cost = parse_cost(value)
        if cost is None and value is not None:
            self._add_finding(_build_path(name), value, _COST)
        return cost

    def _find_value(self, name: str) -> Any:
        container_name, _, member = name.rpartition(".")
        container = self._reported_usage.get(container_name) if container_name else self._reported_usage
        return container.get(member) if isinstance(container, dict) else None

    def _add_finding(self, path: str, value: Any, rule: str) -> None:
        message = (
            f"The answer's usage is implausible: {path} is {_describe_value(value)}, but {rule}. It counts as unknown."
        )
        self.findings.append(Finding(IMPLAUSIBLE, message, path))


def find_usage(root: JsonObject) -> Any:
    """Return the usage object of an answer or event; Groq's is in `x_groq`."""
    groq = root.get("x_groq")
    return root.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None) or root.get("usage")


def read_usage(reported_usage: Any) -> tuple[Usage | None, tuple[Finding, ...]]:
    """Return the usage in OpenAI's format, and findings for implausible figures.

    The usage is None if `reported_usage` is not an object.
    """
    reader = UsageReader(reported_usage)
    usage = Usage(
        input_tokens=reader.tokens("prompt_tokens", "input_tokens", "tokens_evaluated"),
        output_tokens=reader.tokens("completion_tokens", "output_tokens", "tokens_predicted"),
        cached_tokens=reader.tokens("prompt_tokens_details.cached_tokens"),
        reasoning_tokens=reader.tokens("completion_tokens_details.reasoning_tokens"),
        cost=reader.cost("cost"),
    )
    return usage if reader.present else None, tuple(reader.findings)


def usage_to_json(usage: Usage | None) -> JsonObject | None:
    """Return the usage as JSON; None if it is None."""
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost": usage.cost,
    }


def add_usage(total: Usage, usage: Usage | None) -> Usage:
    """Return the sum of both; a figure that neither has stays None."""
    if usage is None:
        return total
    return Usage(
        input_tokens=_add_optional(total.input_tokens, usage.input_tokens),
        output_tokens=_add_optional(total.output_tokens, usage.output_tokens),
        cached_tokens=_add_optional(total.cached_tokens, usage.cached_tokens),
        reasoning_tokens=_add_optional(total.reasoning_tokens, usage.reasoning_tokens),
        cost=_add_optional(total.cost, usage.cost),
    )


def _add_optional(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _build_path(name: str) -> str:
    return f"$.{name}" if name in _ROOT_FIELDS else f"$.usage.{name}"


def _describe_value(value: Any) -> str:
    """Return a description of the value that does not quote text of the endpoint."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if -_MAX_NUMBER < value < _MAX_NUMBER else _OVERFLOW_TEXT
    if isinstance(value, UnrepresentableNumber):
        return "not a number" if value == NOT_A_NUMBER else _OVERFLOW_TEXT
    return "a text" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
