"""Creation of drafts of test cases from recorded traffic. Equal requests become one draft, and secrets are masked."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.strict_json import is_too_deep, write_json
from toolbench.engine.types import JsonObject
from toolbench.evals.user_cases.definition import UserCase, render_case
from toolbench.evals.user_cases.parse import CaseProblem, InvalidCaseError, parse_case
from toolbench.lab.cases.drafts import build_default_title
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.interchange.traffic.exchanges import TOO_DEEP, RecordedExchange
from toolbench.lab.interchange.traffic.masking import mask_secrets
from toolbench.lab.interchange.traffic.reading import TrafficRecord, iter_records
from toolbench.lab.models import GatewayTrace, TrafficDraft
from toolbench.lab.serving.traces import NoDraftError, build_traffic_line
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.providers.masking.secrets import Masker

ROWS_PER_INSERT = 500
MAX_LINES_NAMED = 5  # for each reason to skip records


@dataclass(slots=True)
class SkippedRecords:
    """Records that were skipped for the same reason.

    Attributes:
        count: number of records.
        lines: `TrafficRecord.number` of the first MAX_LINES_NAMED of them, without repeats. Of equal requests that give
            no valid case, only the first is listed.
    """

    reason: str
    count: int = 0
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TrafficImport:
    """Result of an import of traffic.

    Attributes:
        records: number of records that were read.
        added: number of new drafts.
        existing: number of different requests of the file for which a draft existed, in whatever state.
        masked: number of new drafts in which a secret was masked.
        skipped: skipped records by reason, the most frequent reason first.
    """

    records: int
    added: int
    existing: int
    masked: int
    skipped: tuple[SkippedRecords, ...]

    @property
    def sentence(self) -> str:
        """The result as a sentence for the user."""
        skipped_count = sum(group.count for group in self.skipped)
        figures = {
            "Records read": self.records,
            "drafts added": self.added,
            "drafts with a masked secret": self.masked,
            "requests with an existing draft": self.existing,
            "records skipped": skipped_count,
        }
        shown = [f"{name}: {count:,}" for name, count in figures.items() if count or name == "drafts added"]
        return f"{'; '.join(shown)}."


@dataclass(slots=True)
class _RequestGroup:
    """Equal requests of a file.

    Attributes:
        line: `TrafficRecord.number` of the first record.
        exchange: exchange of the first record, with secrets masked.
        masked: whether a secret was masked in `exchange`.
        answers: number of records by answer; an answer is the JSON text of its calls.
        model_by_answer: model name in the first record with an answer, by answer.
    """

    line: int
    exchange: RecordedExchange
    masked: bool
    answers: Counter[str] = field(default_factory=Counter)
    model_by_answer: dict[str, str] = field(default_factory=dict)


def import_traffic(data: bytes, file_name: str) -> TrafficImport:
    """Store a draft for each different request of a file that has none yet.

    The expected calls of a draft are those of the most frequent answer to the request.

    Args:
        data: content of the file, in a format that docs/cases.md lists.
        file_name: name of the file; its last 200 characters are stored.
    """
    masker = load_known_secrets().masker
    groups: dict[str, _RequestGroup] = {}
    skipped: dict[str, SkippedRecords] = {}
    record_count = 0
    for record in iter_records(data):
        record_count += 1
        if record.exchange is None:
            _count_skipped(skipped, record.reason, record.number)
        else:
            _add_to_group(groups, record, record.exchange, masker)
    existing_digests = set(_list_existing_digests(list(groups)))
    drafts = []
    for digest, group in groups.items():
        if digest in existing_digests:
            continue
        try:
            drafts.append(_build_draft(digest, group, file_name))
        except InvalidCaseError as error:
            _count_skipped(skipped, error.problems[0].message, group.line, group.answers.total())
    TrafficDraft.objects.bulk_create(drafts, batch_size=ROWS_PER_INSERT, ignore_conflicts=True)
    reasons = sorted(skipped.values(), key=lambda entry: -entry.count)
    return TrafficImport(
        record_count, len(drafts), len(existing_digests), sum(draft.masked for draft in drafts), tuple(reasons)
    )


def import_trace(trace: GatewayTrace) -> bool:
    """Store a draft for the request of a gateway trace; return False if there is one already.

    Raises:
        NoDraftError: the trace has no readable traffic, or no test case can be built from it.
    """
    result = import_traffic(build_traffic_line(trace), f"trace {trace.pk} of the gateway")
    if result.skipped:
        raise NoDraftError(" ".join(f"No draft was made: {group.reason}." for group in result.skipped))
    return bool(result.added)


def _add_to_group(
    groups: dict[str, _RequestGroup], record: TrafficRecord, exchange: RecordedExchange, masker: Masker
) -> None:
    """Add an exchange to the group of its request. Requests are equal if their masked messages and tools are.

    The key of a group is the hash of these messages and tools.
    """
    parts = [list(exchange.messages), list(exchange.tools), list(exchange.calls)]
    messages, tools, calls = masked_parts = mask_secrets(parts, masker)
    masked_exchange = RecordedExchange(tuple(messages), tuple(tools), tuple(calls), exchange.model)
    digest = hashlib.sha256(json.dumps([messages, tools], sort_keys=True).encode()).hexdigest()
    group = groups.setdefault(digest, _RequestGroup(record.number, masked_exchange, masked_parts != parts))
    answer = json.dumps(calls)
    group.answers[answer] += 1
    group.model_by_answer.setdefault(answer, exchange.model)


def _list_existing_digests(digests: list[str]) -> list[str]:
    return list(TrafficDraft.objects.filter(digest__in=digests).order_by().values_list("digest", flat=True))


def _count_skipped(skipped: dict[str, SkippedRecords], reason: str, line: int, count: int = 1) -> None:
    """Add `count` records that were skipped for a reason; `line` is the `TrafficRecord.number` of the first."""
    entry = skipped.setdefault(reason, SkippedRecords(reason))
    entry.count += count
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
    """Return a case of one turn that expects these calls, or expects no call if there are none.

    Raises:
        InvalidCaseError: the case is not valid, is nested deeper than `is_too_deep` allows, or has a number that is NaN
            or infinite.
    """
    expected = [{"name": call["name"], "arguments": _escape_arguments(call["arguments"])} for call in calls]
    document = {
        "messages": list(exchange.messages),
        "tools": list(exchange.tools),
        "expect": {"calls": expected} if expected else {"no_call": True},
        "turns": 1,
        "parallel": len(calls) > 1,
    }
    if is_too_deep(document):
        raise InvalidCaseError([CaseProblem((), TOO_DEEP)])
    try:
        write_json(document)
    except ValueError:
        raise InvalidCaseError([CaseProblem((), "a number of the record is NaN or infinite")]) from None
    return parse_case(document)


def _escape_arguments(arguments: JsonObject) -> JsonObject:
    """Return the arguments with each value that looks like a matcher replaced by `{"$exact": value}`.

    A judge compares such a value literally.
    """
    return {name: {"$exact": value} if _has_matcher_key(value) else value for name, value in arguments.items()}


def _has_matcher_key(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key.startswith("$") for key in value) or any(map(_has_matcher_key, value.values()))
    return isinstance(value, list) and any(map(_has_matcher_key, value))
