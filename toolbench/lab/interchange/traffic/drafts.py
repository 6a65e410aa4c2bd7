"""Drafts of cases from a file of recorded traffic: equal requests become one draft, secrets are replaced."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.user_cases.definition import UserCase, render_case
from toolbench.evals.user_cases.parse import InvalidCaseError, parse_case
from toolbench.lab.cases.drafts import build_default_title
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.interchange.traffic.exchanges import RecordedExchange
from toolbench.lab.interchange.traffic.masking import mask_secrets
from toolbench.lab.interchange.traffic.reading import TrafficRecord, iterate_records
from toolbench.lab.models import TrafficDraft
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.providers.masking.secrets import Masker

ROWS_PER_INSERT = 500
MAX_LINES_NAMED = 5  # lines named for each reason


@dataclass(slots=True)
class SkippedRecords:
    """Records that became no draft for one reason.

    Attributes:
        lines: the first MAX_LINES_NAMED of them.
    """

    reason: str
    count: int = 0
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TrafficImport:
    """Result of an import of traffic.

    Attributes:
        records: records read.
        added: new drafts.
        known: requests of the file that are a draft already, accepted and rejected ones included.
        masked: new drafts in which a secret was replaced.
    """

    records: int
    added: int
    known: int
    masked: int
    skipped: tuple[SkippedRecords, ...]

    @property
    def sentence(self) -> str:
        """Return what was imported, in words."""
        skipped = sum(group.count for group in self.skipped)
        figures = {
            "Records read": self.records,
            "drafts added": self.added,
            "drafts with a secret replaced": self.masked,
            "requests already here": self.known,
            "records skipped": skipped,
        }
        return (
            "; ".join(f"{name}: {count:,}" for name, count in figures.items() if count or name == "drafts added") + "."
        )


@dataclass(slots=True)
class _RequestGroup:
    """Equal requests of a file."""

    line: int
    exchange: RecordedExchange
    masked: bool
    answers: Counter[str] = field(default_factory=Counter)
    model_by_answer: dict[str, str] = field(default_factory=dict)


def import_traffic(data: bytes, file_name: str) -> TrafficImport:
    """Store a draft for each different request of a file.

    The calls that the model made most often stand as what is expected. A request that is a draft already stays as it
    is.

    Args:
        data: the file, in a form that docs/cases.md lists.
        file_name: its name; the last 200 characters are stored.
    """
    masker = load_known_secrets().masker
    groups: dict[str, _RequestGroup] = {}
    skipped: dict[str, SkippedRecords] = {}
    records = 0
    for record in iterate_records(data):
        records += 1
        if record.exchange is None:
            _count_skipped(skipped, record.reason, record.number)
        else:
            _add_to_group(groups, record, record.exchange, masker)
    known = set(_list_known_digests(list(groups)))
    drafts = []
    for digest, group in groups.items():
        if digest in known:
            continue
        try:
            drafts.append(_build_draft(digest, group, file_name))
        except InvalidCaseError as error:
            for _ in range(group.answers.total()):
                _count_skipped(skipped, error.problems[0].message, group.line)
    TrafficDraft.objects.bulk_create(drafts, batch_size=ROWS_PER_INSERT, ignore_conflicts=True)
    reasons = sorted(skipped.values(), key=lambda entry: -entry.count)
    return TrafficImport(records, len(drafts), len(known), sum(draft.masked for draft in drafts), tuple(reasons))


def _add_to_group(
    groups: dict[str, _RequestGroup], record: TrafficRecord, exchange: RecordedExchange, masker: Masker
) -> None:
    parts = [list(exchange.messages), list(exchange.tools), list(exchange.calls)]
    masked = mask_secrets(parts, masker)
    clean = RecordedExchange(tuple(masked[0]), tuple(masked[1]), tuple(masked[2]), exchange.model)
    digest = hashlib.sha256(json.dumps(masked[:2], sort_keys=True).encode()).hexdigest()
    group = groups.setdefault(digest, _RequestGroup(record.number, clean, masked != parts))
    answer = json.dumps(masked[2])
    group.answers[answer] += 1
    group.model_by_answer.setdefault(answer, exchange.model)


def _list_known_digests(digests: list[str]) -> list[str]:
    return list(TrafficDraft.objects.filter(digest__in=digests).order_by().values_list("digest", flat=True))


def _count_skipped(skipped: dict[str, SkippedRecords], reason: str, line: int) -> None:
    entry = skipped.setdefault(reason, SkippedRecords(reason))
    entry.count += 1
    if len(entry.lines) < MAX_LINES_NAMED and line not in entry.lines:
        entry.lines.append(line)


def _build_draft(digest: str, group: _RequestGroup, file_name: str) -> TrafficDraft:
    ((answer, _),) = group.answers.most_common(1)
    case = _build_case(group.exchange, json.loads(answer))
    return TrafficDraft(
        digest=digest,
        title=to_column_text(build_default_title(case), 120),
        definition=render_case(case),
        file_name=to_column_text(file_name[-200:], 200),
        line=group.line,
        count=group.answers.total(),
        answer_count=len(group.answers),
        model=to_column_text(group.model_by_answer[answer], 200),
        masked=group.masked,
    )


def _build_case(exchange: RecordedExchange, calls: list[JsonObject]) -> UserCase:
    """Return the case that ends after the first answer and expects these calls, or none."""
    expected = [{"name": call["name"], "arguments": _escape_arguments(call["arguments"])} for call in calls]
    return parse_case(
        {
            "messages": list(exchange.messages),
            "tools": list(exchange.tools),
            "expect": {"calls": expected} if expected else {"no_call": True},
            "turns": 1,
            "parallel": len(calls) > 1,
        }
    )


def _escape_arguments(arguments: JsonObject) -> JsonObject:
    """Return arguments in which a value that looks like a matcher is compared as it stands."""
    return {name: {"$exact": value} if _has_matcher_key(value) else value for name, value in arguments.items()}


def _has_matcher_key(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key.startswith("$") for key in value) or any(map(_has_matcher_key, value.values()))
    return isinstance(value, list) and any(map(_has_matcher_key, value))
