"""Import of logs of Inspect AI. docs/imports.md lists what each field of a log becomes.

The verdicts are the scores of the log; no sample is judged again. The scenario of the run is not in the catalogue.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, cast

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import F, Sum
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.create_run import (
    ColumnValues,
    NewCell,
    NewRun,
    NewTrial,
    OnProgress,
    check_not_imported,
    create_run,
)
from toolbench.lab.interchange.inspect_ai.documents import LogDocument, parse_log_document
from toolbench.lab.interchange.inspect_ai.steps import build_steps, render_text
from toolbench.lab.interchange.origin import Origin
from toolbench.lab.interchange.plausible_figures import FigureReader
from toolbench.lab.interchange.safe_zip import Archive, RunImportError, UnpackLimits, open_zip, read_json_member
from toolbench.lab.models import Cell, Run
from toolbench.lab.traces.chat_requests import list_objects
from toolbench.lab.traces.step_facts import to_column_json, to_column_text

LOG_LIMITS = UnpackLimits(members=100_000, bytes=2 << 30)
MAX_LOG_BYTES = 256 << 20
HEADER_NAME, START_NAME = "header.json", "_journal/start.json"
_SAMPLES_FOLDER = "samples/"
_PROVIDER = "Inspect AI"
_CANCELLED_PREFIX = "CancelledError("  # of the error message of a cancelled sample
_PASS_BY_GRADE = {"C": True, "I": False}  # correct and incorrect
_NOTE = (
    "A log of Inspect AI: the verdicts are its scores, and requests are those of the log, not the bytes that were sent."
)


def import_log(
    file: IO[bytes],
    name: str,
    *,
    owner: AbstractBaseUser | None,
    limits: UnpackLimits,
    progress: OnProgress,
) -> Run:
    """Import an `.eval` archive or a `.json` log. After an error nothing is stored.

    Args:
        file: open binary file. It is read as an archive if it begins with "PK", otherwise as JSON.
        name: name of the file, stored with at most 200 characters.
        owner: owner of the new run; None if there is no sign-in.
        limits: maximum sizes of the unpacked archive.
        progress: called after each batch of trials.

    Raises:
        RunImportError: the file cannot be imported.
    """
    if file.seek(0, os.SEEK_END) > MAX_LOG_BYTES:
        raise RunImportError(f"The log has more than {MAX_LOG_BYTES:,} bytes. Nothing was imported.")
    file.seek(0)
    sha256 = hashlib.file_digest(cast(Any, file), "sha256").hexdigest()
    check_not_imported(sha256)
    file.seek(0)
    first_bytes = file.read(2)
    file.seek(0)
    if first_bytes != b"PK":
        log = _parse_document(file.read())
        samples = _LogSamples(log.iter_samples(), log.count)
        return _create_run(log.header, samples, _build_origin(log.header, name, sha256), owner, progress)
    with open_zip(file, limits) as archive:
        header = read_json_member(archive, _find_header(archive))
        names = [name for name in archive.namelist() if name.startswith(_SAMPLES_FOLDER) and name.endswith(".json")]
        # Not sorted: the archive has the samples in the order in which they ended.
        samples = _LogSamples((read_json_member(archive, name) for name in names), len(names))
        return _create_run(header, samples, _build_origin(header, name, sha256), owner, progress)


@dataclass(frozen=True, slots=True)
class _LogSamples:
    """Samples of a log.

    Attributes:
        samples: iterator over the samples; a sample is read when the iterator reaches it.
        count: number of samples, for the progress. It includes values that `samples` skips, since they are no objects.
    """

    samples: Iterator[JsonObject]
    count: int


def _find_header(archive: Archive) -> str:
    """Return the name of the member with the header. An interrupted log has only the header written at its start.

    Raises:
        RunImportError: the archive has no header.
    """
    names = archive.namelist()
    if HEADER_NAME in names:
        return HEADER_NAME
    if START_NAME in names:
        return START_NAME
    raise RunImportError(f"The file has no {HEADER_NAME}, so it is not a log of Inspect AI. Nothing was imported.")


def _parse_document(content: bytes) -> LogDocument:
    """Parse a JSON log.

    Raises:
        RunImportError: the content is not a log of Inspect AI.
    """
    try:
        document = parse_log_document(content)
    except ValueError as error:
        raise RunImportError(
            f"The file cannot be read as a zip archive or as JSON: {error}. Nothing was imported."
        ) from error
    if not isinstance(document.header.get("eval"), dict):
        raise RunImportError("The file has no `eval`, so it is not a log of Inspect AI. Nothing was imported.")
    return document


def _build_origin(header: JsonObject, name: str, sha256: str) -> Origin:
    spec = get_object(header.get("eval"))
    source = {
        key: to_column_text(render_text(spec.get(key)), 200)
        for key in ("eval_id", "run_id", "task", "task_id", "created")
    }
    return Origin(
        kind="inspect",
        sha256=sha256,
        file=to_column_text(name, 200),
        source=source,
        made_at=source["created"],
        imported_at=timezone.now().isoformat(timespec="seconds"),
        private=(_build_scenario_slug(spec),),
        note=_NOTE,
    )


def _create_run(
    header: JsonObject, samples: _LogSamples, origin: Origin, owner: AbstractBaseUser | None, progress: OnProgress
) -> Run:
    spec, status = get_object(header.get("eval")), header.get("status")
    figure_reader = FigureReader()
    created_at = _parse_created(origin.made_at)
    run: ColumnValues = {
        "title": to_column_text(f"{render_text(spec.get('task'))} (Inspect AI)", 200),
        "state": Run.State.FINISHED if status == "success" else Run.State.CANCELLED,
        "instance_kind": "drawn",
        "stopped_reason": "" if status == "success" else to_column_text(f"status {render_text(status)}", 100),
        "created_at": created_at and figure_reader.read_time("created", created_at),
    }
    cell = {"scenario": _build_scenario_slug(spec), "scenario_group": "inspect", "instance_kind": "drawn"}
    trials = (
        _build_trial(sample, position, _build_scenario_slug(spec), figure_reader)
        for position, sample in enumerate(samples.samples)
    )
    new_run = NewRun(run, (_build_config(header),), (NewCell(0, cell),), trials, figure_reader, samples.count)
    with transaction.atomic():
        return _store_totals(create_run(new_run, origin, owner=owner, progress=progress))


def _store_totals(run: Run) -> Run:
    """Set requests and tokens of the run to the sums of its trials, since a log has them only by sample.

    Set `trials_per_cell` to the number of trials, since all trials are in one cell. Return the run.
    """
    totals = Cell.objects.filter(run=run).aggregate(
        requests=Sum("requests"), tokens=Sum(F("input_tokens") + F("output_tokens"))
    )
    run.requests_reserved, run.tokens_used = totals["requests"] or 0, totals["tokens"] or 0
    run.trials_per_cell = run.trial_count
    run.save(update_fields=["requests_reserved", "tokens_used", "trials_per_cell"])
    return run


def _build_config(header: JsonObject) -> ColumnValues:
    spec = get_object(header.get("eval"))
    config = get_object(spec.get("model_generate_config"))
    options = {key: value for key, value in config.items() if isinstance(value, int | float | str)}
    frozen_settings = json.dumps([spec.get("model"), config, header.get("plan")], sort_keys=True, default=str)
    return {
        "provider_name": _PROVIDER,
        "provider_kind": "inspect",
        "model_name": to_column_text(spec.get("model") or "unknown", 200),
        "canonical": to_column_text(spec.get("model"), 200),
        "profile": "as logged",
        "options": to_column_json(options),
        "strategy": "as logged",
        "method": "native",
        "tool_use_mode": "relaxed",
        "policy_hash": hashlib.sha256(frozen_settings.encode()).hexdigest(),
    }


def _parse_created(text: str) -> datetime | None:
    """Return the time in a text; None if it is not a time with a time zone."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None


def _build_trial(sample: JsonObject, position: int, slug: str, figure_reader: FigureReader) -> NewTrial:
    """Return the trial of a sample; `position` is the number of the sample in the log, from 0."""
    steps = build_steps(sample, figure_reader)
    outcome, sentence, checks = _read_verdict(sample)
    exchanges = [step.step for step in steps if step.step["kind"] == "exchange"]
    tool_calls = [step.step for step in steps if step.step["kind"] == "tool"]
    task_pass = {"pass": True, "fail": False}.get(outcome)
    final_text = render_text(get_object(sample.get("output")).get("completion"))
    columns: ColumnValues = {
        "index": position + 1,
        "block": position + 1,
        "position": position,
        "scenario": slug,
        "instance_kind": "drawn",
        "instance_seed": _derive_instance_seed(sample),
        "seed": 0,
        "execution": 1,
        "outcome": outcome,
        "task_pass": task_pass,
        "category": "" if task_pass is not False else "ASSERTION_FAILED",
        "sentence": to_column_text(sentence, 2000),
        "verdict": {"rule": "the log's own score", "checks": checks},
        "final_text": final_text.encode("utf-8", "surrogatepass"),
        "duration_ms": figure_reader.read("duration_ms", sample.get("total_time"), ms_per_unit=1000),
        "model_ms": figure_reader.read_total("model_ms", (step["duration_ms"] for step in exchanges)),
        "tool_ms": figure_reader.read_total("tool_ms", (step["duration_ms"] for step in tool_calls)),
        "turns": len(exchanges),
        "requests": len(exchanges),
        "calls": len(tool_calls),
        "input_tokens": figure_reader.read_total("input_tokens", (step["input_tokens"] for step in exchanges)),
        "output_tokens": figure_reader.read_total("output_tokens", (step["output_tokens"] for step in exchanges)),
        "prompt_version": "",
        "cached_tokens": _sum_tokens(sample, "cached_tokens", "input_tokens_cache_read", figure_reader),
        "reasoning_tokens": _sum_tokens(sample, "reasoning_tokens", "reasoning_tokens", figure_reader),
        "error_hint": to_column_text(_describe_sample(sample), 300),
    }
    return NewTrial(0, 0, columns, tuple(steps))


def _read_verdict(sample: JsonObject) -> tuple[str, str, list[JsonObject]]:
    """Return the outcome of a sample, a sentence about it, and one check for each score.

    The outcome of a sample that ended with an error is "infra" or "cancelled". A sample that reached a limit is judged
    by its scores. The outcome is "na" if there is no score, or if a score is neither pass nor fail.
    """
    if error_message := render_text(get_object(sample.get("error")).get("message")):
        if error_message.startswith(_CANCELLED_PREFIX):
            return "cancelled", "The sample was cancelled because an error of another sample ended the evaluation.", []
        return "infra", f"The sample ended with an error: {error_message}", []
    logged_scores = sample.get("scores")
    scores: Mapping[str, Any] = get_object(logged_scores)
    if not scores and isinstance(sample.get("score"), dict):
        scores = {"score": sample["score"]}
    checks = [_build_check(name, get_object(score)) for name, score in scores.items()]
    grades = [_read_grade(get_object(score).get("value")) for score in scores.values()]
    if not grades or None in grades:
        return "na", "The log does not say whether this sample passed or failed.", checks
    limit_reason = render_text(get_object(sample.get("limit")).get("reason"))
    if all(grades):
        return "pass", f"{limit_reason}." if limit_reason else "", checks
    first_failed = next(check for check, grade in zip(checks, grades, strict=True) if not grade)
    message = f"The scorer {first_failed['name']} returned {first_failed['detail']}"
    return "fail", f"{limit_reason}. {message}" if limit_reason else message, checks


def _derive_instance_seed(sample: JsonObject) -> int:
    """Return the first 48 bits of the hash of the sample's id: the same seed in all epochs and logs."""
    return int.from_bytes(hashlib.sha256(render_text(sample.get("id")).encode("utf-8", "surrogatepass")).digest()[:6])


def _sum_tokens(sample: JsonObject, column: str, usage_key: str, figure_reader: FigureReader) -> int | float:
    """Return the sum of one kind of tokens over all models that a sample used.

    Args:
        sample: the sample.
        column: column of the trial.
        usage_key: key of these tokens in the log's usage of a model.
        figure_reader: reader of the numbers of tokens.
    """
    usage = get_object(sample.get("model_usage"))
    return figure_reader.read_total(
        column, [figure_reader.read(column, get_object(usage_row).get(usage_key)) for usage_row in usage.values()]
    )


def _describe_sample(sample: JsonObject) -> str:
    description = f"sample {render_text(sample.get('id'))}, epoch {render_text(sample.get('epoch'))}"
    earlier_attempts = len(list_objects(sample.get("error_retries")))
    return f"{description}, attempt {earlier_attempts + 1}" if earlier_attempts else description


def _build_check(name: str, score: JsonObject) -> JsonObject:
    detail = ": ".join(filter(None, (render_text(score.get("value")), render_text(score.get("explanation"))[:500])))
    return {
        "name": to_column_text(name, 100),
        "ok": _read_grade(score.get("value")) is True,
        "detail": to_column_text(detail, 600),
    }


def _read_grade(value: object) -> bool | None:
    """Return True for a pass ("C", true or 1), False for a failure ("I", false or 0) and None for other values."""
    if isinstance(value, str):
        return _PASS_BY_GRADE.get(value)
    return bool(value) if isinstance(value, bool | int | float) and value in (0, 1) else None


def _build_scenario_slug(spec: JsonObject) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", render_text(spec.get("task")).lower()).strip("_")
    return f"inspect_{name or 'task'}"[:60]
