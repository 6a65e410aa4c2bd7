"""Reading of tokens and cost from answers, and their sums."""

from typing import Any

from toolbench.engine.bounds import MAX_COST_USD, MAX_TOKENS, parse_cost, parse_count
from toolbench.engine.strict_json import get_object
from toolbench.engine.types import Finding, JsonObject, Usage
from toolbench.engine.wire_formats.unrepresentable_numbers import NOT_A_NUMBER, UnrepresentableNumber

IMPLAUSIBLE_CODE = "usage_implausible"
_TOKENS_RULE = f"tokens are whole numbers from 0 to {MAX_TOKENS:,}"
_COST_RULE = f"a cost is a number from 0 to {MAX_COST_USD:,}"
_OBJECT_RULE = "usage is an object"
_ROOT_FIELDS = ("tokens_evaluated", "tokens_predicted")  # fields of llama.cpp, which sends no `usage`
_MAX_QUOTED_NUMBER = 10**15  # findings quote only numbers of smaller magnitude
_OVERFLOW_TEXT = "a number beyond all bounds"


class UsageReader:
    """Reader of the figures of one usage object, within their bounds.

    Attributes:
        findings: findings for implausible figures, which count as unknown, and for a usage that is no object. Null and
            missing figures get no finding.
        has_usage: whether there is a usage object.
    """

    def __init__(self, reported_usage: Any) -> None:
        self.findings: list[Finding] = []
        self._reported_usage: JsonObject = get_object(reported_usage)
        self.has_usage = isinstance(reported_usage, dict)
        if reported_usage is not None and not self.has_usage:
            self._add_finding("$.usage", reported_usage, _OBJECT_RULE)

    def read_tokens(self, *names: str) -> int | None:
        """Return the first plausible figure under `names`; None if there is none.

        Args:
            *names: names of fields, in this order; `object.member` for a field of an inner object.
        """
        for name in names:
            value = self._find_value(name)
            if (count := parse_count(value)) is not None:
                return count
            if value is not None:
                self._add_finding(_build_path(name), value, _TOKENS_RULE)
        return None

    def sum_tokens(self, *names: str) -> int | None:
        """Return the sum of the figures under all `names`.

        Returns:
            The sum; None if all figures are missing, or one of them or the sum is implausible.
        """
        finding_count = len(self.findings)
        counts = [count for name in names if (count := self.read_tokens(name)) is not None]
        if len(self.findings) > finding_count or not counts:
            return None
        if (total_tokens := parse_count(sum(counts))) is None:
            self._add_finding("$.usage", sum(counts), _TOKENS_RULE)
        return total_tokens

    def read_cost(self, name: str) -> float | None:
        """Return the US dollars under `name`; None if they are missing or implausible."""
        value = self._find_value(name)
        cost = parse_cost(value)
        if cost is None and value is not None:
            self._add_finding(_build_path(name), value, _COST_RULE)
        return cost

    def _find_value(self, name: str) -> Any:
        parent_name, _, member = name.rpartition(".")
        parent = self._reported_usage.get(parent_name) if parent_name else self._reported_usage
        return parent.get(member) if isinstance(parent, dict) else None

    def _add_finding(self, path: str, value: Any, rule: str) -> None:
        message = (
            f"The answer's usage is implausible: {path} is {_describe_value(value)}, but {rule}. It counts as unknown."
        )
        self.findings.append(Finding(IMPLAUSIBLE_CODE, message, path))


def find_usage(root: JsonObject) -> Any:
    """Return the usage of an answer or event, as received; None if there is none.

    Groq sends it in `x_groq`. An empty usage is returned only if there is no other.
    """
    groq = root.get("x_groq")
    return root.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None) or root.get("usage")


def read_usage(reported_usage: Any) -> tuple[Usage | None, tuple[Finding, ...]]:
    """Return the usage of a chat completions or completions answer, and findings for implausible figures.

    The usage is None if `reported_usage` is not an object.
    """
    reader = UsageReader(reported_usage)
    usage = Usage(
        input_tokens=reader.read_tokens("prompt_tokens", "input_tokens", "tokens_evaluated"),
        output_tokens=reader.read_tokens("completion_tokens", "output_tokens", "tokens_predicted"),
        cached_tokens=reader.read_tokens("prompt_tokens_details.cached_tokens"),
        reasoning_tokens=reader.read_tokens("completion_tokens_details.reasoning_tokens"),
        cost=reader.read_cost("cost"),
    )
    return usage if reader.has_usage else None, tuple(reader.findings)


def build_usage_json(usage: Usage | None) -> JsonObject | None:
    """Return the usage as an object with a key for each figure; None if `usage` is None."""
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost": usage.cost,
    }


def add_usage(total_usage: Usage, usage: Usage | None) -> Usage:
    """Return the sum of two usages, figure by figure.

    A figure that only one of them has is the sum; a figure that neither has is None.
    """
    if usage is None:
        return total_usage
    return Usage(
        input_tokens=_add_optional(total_usage.input_tokens, usage.input_tokens),
        output_tokens=_add_optional(total_usage.output_tokens, usage.output_tokens),
        cached_tokens=_add_optional(total_usage.cached_tokens, usage.cached_tokens),
        reasoning_tokens=_add_optional(total_usage.reasoning_tokens, usage.reasoning_tokens),
        cost=_add_optional(total_usage.cost, usage.cost),
    )


def _add_optional(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return first + second


def _build_path(name: str) -> str:
    return f"$.{name}" if name in _ROOT_FIELDS else f"$.usage.{name}"


def _describe_value(value: Any) -> str:
    """Return a description of the value that does not quote text of the endpoint."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if -_MAX_QUOTED_NUMBER < value < _MAX_QUOTED_NUMBER else _OVERFLOW_TEXT
    if isinstance(value, UnrepresentableNumber):
        return "not a number" if value == NOT_A_NUMBER else _OVERFLOW_TEXT
    return "a text" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
