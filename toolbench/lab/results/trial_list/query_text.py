"""Parser of the query bar's text.

An example is `model:glm cause:wrong_argument path:$.city started>1h "lost" words`. A term is a field, an operator and a
value; trials must match all terms. If there are terms `seen` and `path`, each of these causes must be found at each of
these paths. Other words are searched in texts of trials.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import partial
from itertools import product
from math import isfinite

from django.db.models import Exists, F, OuterRef, Q, Value
from django.db.models.fields.json import DataContains
from django.utils import timezone

from toolbench.lab.metrics.result_filter import parse_day
from toolbench.lab.models import HumanVerdict, Step
from toolbench.lab.models.trials import CAUSES_AT_ANY_INDEX, HAS_CAUSES, HAS_WRONG_PATHS
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.trial_list.text_search import build_part_condition, build_search_condition

Condition = Q | Exists
# A term, or a quoted part, which may look as if it contained terms.
_TERM = re.compile(r'(?<!\S)([a-z]+)(:|>=|<=|>|<)("[^"]*"|\S+)|"[^"]*"')
_LOOKUPS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte", ":": "exact"}
_DURATION = re.compile(r"(\d{1,6})(m|h|d)")  # such as 30m, 2h or 7d
_DURATION_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_MAX_DAYS = 3_650  # of a duration
# Column by field; a trial matches if the column contains the value.
PART_FIELDS = {
    "model": "config__model_name",
    "provider": "config__provider_name",
    "scenario": "scenario",
    "profile": "config__profile",
}
# Column by field; a trial matches if the column is equal to the value.
EXACT_FIELDS = {
    "strategy": "config__strategy",
    "method": "config__method",
    "cause": "cause",
    "class": "failure_class",
    "label": "label",
}
NUMBER_FIELDS = {
    "ms": "duration_ms",
    "turns": "turns",
    "retries": "retries",
    "requests": "requests",
    "cost": "cost",
    "tokens": "",  # input and output together
}
OUTCOME_WORDS = ("pass", "fail", "infra", "na", "cancelled", "running", "queued")
# Word of OUTCOME_WORDS, by another word that users may write for it.
_OUTCOME_SYNONYMS = {
    "passed": "pass",
    "success": "pass",
    "failed": "fail",
    "failure": "fail",
    "infrastructure": "infra",
    "canceled": "cancelled",
    "waiting": "queued",
}
FIELDS = (
    *PART_FIELDS,
    *EXACT_FIELDS,
    *("outcome", "human", "seen", "path", "tool", "run", "trial"),
    *NUMBER_FIELDS,
    "started",
)


@dataclass(frozen=True, slots=True)
class Term:
    """Term of a query text."""

    field: str
    operator: str
    value: str

    @property
    def text(self) -> str:
        """Return the text of the term."""
        return f"{self.field}{self.operator}{self.value}"


@dataclass(frozen=True, slots=True)
class TrialQuery:
    """Parsed query text.

    Attributes:
        terms: the terms that filter.
        words: the text without all of its terms.
        ignored: texts of terms whose operator or value does not fit the field; they do not filter.
    """

    terms: tuple[Term, ...]
    words: str
    ignored: tuple[str, ...]

    @property
    def reads_texts(self) -> bool:
        """Return whether the query reads search texts, which are written some seconds after the end of a trial."""
        return bool(self.words) or any(term.field == "tool" for term in self.terms)


def parse_query_text(text: str) -> TrialQuery:
    """Parse the terms and words of a text. A term whose field is not one of FIELDS is a word."""
    terms: list[Term] = []
    ignored: list[Term] = []
    for field, operator, value in _TERM.findall(text):
        if field in FIELDS:
            term = Term(field, operator, value)
            (terms if _build_condition(term) is not None else ignored).append(term)
    words = _TERM.sub(lambda match: " " if match[1] in FIELDS else match[0], text)
    return TrialQuery(tuple(terms), " ".join(words.split()), tuple(term.text for term in ignored))


def build_query_conditions(query: TrialQuery, outcomes: Mapping[str, Q]) -> list[Condition]:
    """Return the conditions of a query, all of which trials must meet.

    Args:
        query: the query.
        outcomes: condition of each word of OUTCOME_WORDS.
    """
    codes, paths = _find_values(query, "seen"), _find_values(query, "path")
    conditions: list[Condition] = [_build_all_seen_condition(codes, paths)] if codes or paths else []
    for term in query.terms:
        if term.field == "outcome":
            conditions.append(outcomes[read_outcome(_read_value(term))])
        elif term.field not in ("seen", "path"):
            condition = _build_condition(term)
            assert condition is not None
            conditions.append(condition)
    return [*conditions, build_search_condition(query.words)] if query.words else conditions


def build_seen_condition(code: str, path: str) -> Condition:
    """Return the condition that a cause was found in the trial.

    For a path without a code, trials with a wrong argument at this path match too.

    Args:
        code: code of the cause; "" for any cause.
        path: JSON path of the cause or the argument, with or without "$." at its start; indexes of lists are ignored.
            "" for any path.
    """
    return _build_all_seen_condition([code] if code else [], [path] if path else [])


def _build_all_seen_condition(codes: Sequence[str], paths: Sequence[str]) -> Q:
    """Return the condition that every cause was found at every path; with codes only, that each was found.

    A single comparison covers all pairs of code and path, since 1,000 characters of a query can give 5,000 pairs.
    """
    paths = [re.sub(r"\[\d+\]", "[]", path if path.startswith("$") else f"$.{path}") for path in paths]
    if codes:
        causes = [{"code": code, "path": path} for code, path in product(codes, paths)]
        return HAS_CAUSES & Q(DataContains(CAUSES_AT_ANY_INDEX, causes or [{"code": code} for code in codes]))
    return Q(*(_build_path_condition(path) for path in paths))


def _build_path_condition(path: str) -> Q:
    is_cause = HAS_CAUSES & Q(DataContains(CAUSES_AT_ANY_INDEX, [{"path": path}]))
    return is_cause | HAS_WRONG_PATHS & Q(wrong_paths__contains=[path])


def _find_values(query: TrialQuery, field: str) -> list[str]:
    """Return the distinct values of the terms with a field."""
    return list(dict.fromkeys(_read_value(term) for term in query.terms if term.field == field))


def read_outcome(word: str) -> str:
    """Return the word of OUTCOME_WORDS for a word or its synonym; return any other word in lower case."""
    lower_word = word.lower()
    return _OUTCOME_SYNONYMS.get(lower_word, lower_word)


def _read_value(term: Term) -> str:
    return term.value.strip('"')


def _build_condition(term: Term) -> Condition | None:
    """Return the condition of a term; None if the operator or the value does not fit the field."""
    value, field = _read_value(term), term.field
    if not value:
        return None
    if field in NUMBER_FIELDS:
        return _compare_number(field, term.operator, value)
    if field == "started":
        return _compare_start(term.operator, value)
    if term.operator != ":":
        return None
    if field in PART_FIELDS:
        return build_part_condition(PART_FIELDS[field], value)
    if field in EXACT_FIELDS:
        return Q(**{EXACT_FIELDS[field]: value})
    return _OTHER_FIELDS[field](value)


def _compare_number(field: str, operator: str, value: str) -> Condition | None:
    try:
        number = float(value)
    except ValueError:
        return None
    if not isfinite(number) or abs(number) > 1e15:
        return None
    if field == "tokens":
        return Q(**{f"input_tokens__{_LOOKUPS[operator]}": number - F("output_tokens")})
    # Without Value, Django would round the number for an integer column.
    return Q(**{f"{NUMBER_FIELDS[field]}__{_LOOKUPS[operator]}": Value(number)})


def _compare_start(operator: str, value: str) -> Condition | None:
    """Return the condition for a day in UTC (2026-11-23) or a time before now (30m, 2h, 7d).

    For example, `>2h` selects trials that started less than 2 hours ago, and `>2026-11-23` those of later days. The
    operator `:` stands for the whole day; it does not fit a time before now.
    """
    if match := _DURATION.fullmatch(value):
        span = timedelta(**{_DURATION_UNITS[match[2]]: int(match[1])})
        if operator == ":" or span.days > _MAX_DAYS:
            return None
        return Q(**{f"started_at__{_LOOKUPS[operator]}": timezone.now() - span})
    date = parse_day(value)
    if date is None:
        return None
    day = datetime.combine(date, time(), UTC)
    if operator == ":":
        return Q(started_at__gte=day, started_at__lt=day + timedelta(days=1))
    boundary = day + timedelta(days=1) if operator in (">", "<=") else day  # end or beginning of the day
    return Q(**{f"started_at__{'gte' if operator in ('>', '>=') else 'lt'}": boundary})


def _build_tool_condition(tool_name: str) -> Condition:
    """Return the condition that a tool was called in the latest execution.

    The search text names the called tools and has an index, so its condition preselects the trials.
    """
    calls = Step.objects.filter(trial=OuterRef("pk"), execution=OuterRef("execution"), kind=Step.Kind.TOOL)
    return Q(Exists(calls.filter(tool_name=tool_name))) & build_search_condition(tool_name)


def _build_human_condition(value: str) -> Condition | None:
    """Return the condition that the trial has a human verdict: equal to the judge's, different, or any.

    Returns:
        None for another value than `right`, `wrong` and `any`.
    """
    current = HumanVerdict.objects.filter(trial=OuterRef("pk"), current=True, execution=OuterRef("execution"))
    verdicts = {
        "wrong": current.exclude(verdict=OuterRef("outcome")),
        "right": current.filter(verdict=OuterRef("outcome")),
        "any": current,
    }
    return Exists(verdicts[value]) if value in verdicts else None


def _build_id_condition(column: str, value: str) -> Condition | None:
    number = parse_whole_number(value.removeprefix("#"))
    return None if number is None else Q(**{column: number})


# Functions by field, for fields that have only the operator ":". Each returns the condition of a value; None if the
# value does not fit.
_OTHER_FIELDS: Mapping[str, Callable[[str], Condition | None]] = {
    # The conditions of outcomes are an argument of build_query_conditions; here, the value is only checked.
    "outcome": lambda value: Q() if read_outcome(value) in OUTCOME_WORDS else None,
    "human": _build_human_condition,
    "seen": lambda value: build_seen_condition(value, ""),
    "path": lambda value: build_seen_condition("", value),
    "tool": _build_tool_condition,
    "run": partial(_build_id_condition, "run_id"),
    "trial": partial(_build_id_condition, "pk"),
}
