"""Decision records: saved decisions with their rule and evidence, and how current results differ from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.http import QueryDict

from toolbench.evals.decisions.assessments import Assessment, DecisionRule, IntervalEstimate
from toolbench.evals.statistics.pooling import PooledRate
from toolbench.evals.statistics.rounding import format_rounded
from toolbench.lab.date_texts import render_moment
from toolbench.lab.engine_version import compute_engine_version
from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.metrics.rate import Rate, build_pooled_rate
from toolbench.lab.models import DecisionRecord
from toolbench.lab.query_params import clean_text, normalise_lines
from toolbench.lab.results.compare.warnings import SIMULATED
from toolbench.lab.results.decide.page import DecidePage, DecideRow, get_decide_page
from toolbench.lab.results.decide.query import DecideQuery

# These columns are empty if the counts are incomplete, and in records that earlier versions saved.
_RETRY_COLUMNS = ("answers_429", "answers_5xx", "retries", "backoff_ms")
EXPORT_COLUMNS = (
    "configuration", "standing", "passed", "tried", "answered", "delivered_low", "delivered_high", "p95_ms_low",
    "p95_ms", "p95_ms_high", "cost_per_success", "on_front", "runs", "settings", "reasons",
    "simulated", "missing_trials", *_RETRY_COLUMNS,
)  # fmt: skip
_RECORD_FIELDS = (
    "title", "note", "who", "simulated", "query", "rule", "group", "verdict", "sentence", "leader", "chosen_among",
    "evidence", "engine_version", "confirmed",
)  # fmt: skip
NO_LEADER = "none qualifies"
MAX_TITLE_CHARACTERS, MAX_NOTE_CHARACTERS = 200, 4000


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A difference between a record and the result of the same query now.

    Attributes:
        label: name of the configuration, or "The answer" for the sentence of the decision.
        then: text in the record; "not there" for a configuration that the record lacks.
        now: text of the current result; "not there" for a configuration that it lacks.
    """

    label: str
    then: str
    now: str


def save_record(
    query: DecideQuery, *, owner: AbstractBaseUser | None, title: str = "", note: str = ""
) -> DecisionRecord:
    """Save the current decision of a query.

    Args:
        query: scope and rule.
        owner: user who saves the decision; None without a login.
        title: title, truncated to MAX_TITLE_CHARACTERS. If it is "", the record gets one with the rule and the leader.
        note: a text of the user, truncated to MAX_NOTE_CHARACTERS.
    """
    page = get_decide_page(query)
    decision, rule = page.decision, page.decision.rule
    leader = page.leader
    return DecisionRecord.objects.create(
        title=clean_text(title, MAX_TITLE_CHARACTERS) or _build_title(page),
        note=clean_text(normalise_lines(note), MAX_NOTE_CHARACTERS),
        owner_id=owner.pk if owner else None,
        who=owner.get_username() if owner else "",
        simulated=page.simulated,
        query=page.query.query(),
        rule={"want": rule.want, "success": rule.success, "within_ms": rule.within_ms},
        group=page.pool.group,
        verdict=decision.verdict,
        sentence=decision.sentence,
        leader=leader.assessment.measured.key if leader else "",
        chosen_among=decision.chosen_among,
        evidence=[row_to_json(row) for row in page.rows],
        engine_version=compute_engine_version(),
    )


def find_record(record_id: int) -> DecisionRecord | None:
    """Return the record with its confirmation run, or None if there is no such record."""
    return DecisionRecord.objects.select_related("confirmation").filter(pk=record_id).first()


def get_records(limit: int = 200) -> tuple[DecisionRecord, ...]:
    """Return the newest records, the newest first, without their evidence."""
    return tuple(DecisionRecord.objects.defer("evidence")[:limit])


def find_leader_row(record: DecisionRecord) -> Mapping[str, Any] | None:
    """Return the row of evidence of the leader; None if no configuration qualified."""
    return next((row for row in record.evidence if row["key"] == record.leader), None)


def build_frozen_rate(row: Mapping[str, Any]) -> Rate:
    """Return the end-to-end success of a row of evidence.

    Rows that earlier versions of Toolbench saved lack some values. Their interval is a Wilson interval over all trials,
    and it is withheld if one of the reasons is `repeats`.
    """
    has_repeats = any(reason["name"] == "repeats" for reason in row["reasons"])
    successes = row.get("delivered", row["passed"])
    pooled = PooledRate(
        share=row.get("share", successes / row["tried"] if row["tried"] else 0.0), low=row["low"], high=row["high"],
        k=successes, n=row["tried"], method=row.get("method", "Wilson"), error=row.get("error"),
    )  # fmt: skip
    return build_pooled_rate(
        successes, row["tried"], pooled, distinct=row.get("distinct"), withheld=row.get("withheld", has_repeats)
    )


def list_record_changes(record: DecisionRecord) -> tuple[RecordChange, ...]:
    """Return the differences between a record and the result of the same query now.

    Returns:
        The differences. That of the decision's sentence comes first; a mere rewording of the sentence is no difference.
    """
    page = get_decide_page(DecideQuery.from_query(QueryDict(record.query)))
    now_by_key = {row.assessment.measured.key: row_to_json(row) for row in page.rows}
    then_by_key = {row["key"]: row for row in record.evidence}
    changes: list[RecordChange] = []
    for key in dict.fromkeys([*then_by_key, *now_by_key]):
        then, now = describe_row(then_by_key.get(key)), describe_row(now_by_key.get(key))
        if then != now:
            changes.append(RecordChange((then_by_key.get(key) or now_by_key[key])["label"], then, now))
    leader = page.leader.assessment.measured.key if page.leader else ""
    is_changed = bool(changes) or (page.decision.verdict, leader) != (record.verdict, record.leader)
    if is_changed and page.decision.sentence != record.sentence:
        changes.insert(0, RecordChange("The answer", record.sentence, page.decision.sentence))
    return tuple(changes)


def assessment_to_json(assessment: Assessment) -> dict[str, Any]:
    """Return the state, the reasons and the figures of an assessment as JSON values."""
    measured, p95 = assessment.measured, assessment.p95
    return {
        "key": measured.key,
        "label": measured.label,
        "state": assessment.state,
        "reasons": [
            {"name": reason.name, "kind": reason.kind, "sentence": reason.sentence} for reason in assessment.reasons
        ],
        "passed": measured.passed,
        "tried": measured.tried,
        "answered": measured.answered,
        "delivered": measured.end_to_end_successes,
        "share": measured.end_to_end_pool.share,
        "method": measured.end_to_end_pool.method,
        "error": measured.end_to_end_pool.error,
        "cost_from": measured.cost_from,
        "low": assessment.low,
        "high": assessment.high,
        "withheld": measured.has_repeated_answers,
        "given_low": assessment.answered_low,
        "p95_ms": {"low": p95.low, "value": p95.value, "high": p95.high} if p95 else None,
        "cost": _estimate_to_json(measured.cost),
        "lost": dict(measured.infra_errors),
        "by_hand": measured.added_manually,
        "missing_trials": assessment.missing_trial_count,
    }


def export_record(record: DecisionRecord) -> ExportTable:
    """Return the evidence of a record as a table, with the decision in the notes of the table."""
    rule, limit_ms = record.rule, record.rule["within_ms"]
    limit = "no time limit" if limit_ms is None else f"p95 at most {limit_ms / 1000:g} s (upper bound)"
    notes = (
        record.sentence,
        f"Rule: {DecisionRule(rule['want']).goal}, "
        f"end-to-end success at least {rule['success']:g} % (lower bound), {limit}.",
        f"Saved on {render_moment(record.created_at)} UTC by {record.who or 'an unknown user'}, "
        f"engine {record.engine_version}.",
        *((SIMULATED,) if record.simulated else ()),
        *((f"Confirmed on new trials: {describe_row(record.confirmed)}.",) if record.confirmed else ()),
    )
    return ExportTable(record.title, notes, EXPORT_COLUMNS, tuple(_build_export_row(row) for row in record.evidence))


def record_to_json(record: DecisionRecord) -> dict[str, Any]:
    """Return the record with its evidence as JSON values."""
    ids = {"id": record.pk, "created_at": record.created_at.isoformat(), "confirmation_run": record.confirmation_id}
    return ids | {name: getattr(record, name) for name in _RECORD_FIELDS}


def _build_title(page: DecidePage) -> str:
    rule = page.decision.rule
    limit = "" if rule.within_ms is None else f", p95 ≤ {rule.within_ms / 1000:g} s"
    name = page.leader.candidate.model if page.leader else NO_LEADER
    return f"{rule.goal.capitalize()}, end-to-end success ≥ {rule.success:g} %{limit}: {name}"[:MAX_TITLE_CHARACTERS]


def row_to_json(row: DecideRow) -> dict[str, Any]:
    """Return a row of the decision page as JSON values, as records store it."""
    candidate = row.candidate
    return assessment_to_json(row.assessment) | {
        "distinct": row.end_to_end.distinct,
        "on_front": row.on_front,
        "simulated": candidate.simulated,
        "config_id": candidate.config_id,
        "config_ids": list(candidate.config_ids),
        "run_ids": list(candidate.run_ids),
        "cell_ids": list(candidate.cell_ids),
        "scenarios": list(candidate.scenarios),
        "settings": candidate.policy_hash,
        "cautions": list(candidate.cautions),
        "retries": candidate.tally.retries_json,
    }


def _estimate_to_json(estimate: IntervalEstimate | None) -> dict[str, float] | None:
    return {"low": estimate.low, "value": estimate.value, "high": estimate.high} if estimate else None


def describe_row(row: Mapping[str, Any] | None) -> str:
    """Return the state and the main figures of a row of evidence in one line; "not there" for None."""
    if row is None:
        return "not there"
    rate, p95 = build_frozen_rate(row), row["p95_ms"]
    time = f", p95 {format_rounded(p95['value'] / 1000, 1)} s" if p95 else ""
    bounds = "without an interval" if rate.withheld else f"[{rate.low_percent}–{rate.high_percent}] %"
    return f"{row['state']}, end-to-end success {rate.k}/{rate.n} {bounds}{time}"


def _build_export_row(row: Mapping[str, Any]) -> tuple[str | int | float | bool | None, ...]:
    rate, p95, cost = build_frozen_rate(row), row["p95_ms"] or {}, row["cost"] or {}
    low, high = (None, None) if rate.withheld else (round(rate.low, 4), round(rate.high, 4))
    return (
        row["label"], row["state"], rate.k, rate.n, row["answered"], low,
        high, p95.get("low"), p95.get("value"), p95.get("high"), cost.get("value"), row["on_front"],
        ", ".join(map(str, row["run_ids"])), row["settings"], " ".join(reason["sentence"] for reason in row["reasons"]),
        row["simulated"], row.get("missing_trials"), *((row.get("retries") or {}).get(name) for name in _RETRY_COLUMNS),
    )  # fmt: skip
