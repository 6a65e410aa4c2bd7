"""Samples of an Inspect AI log, built from finished trials.

The id of a sample stands for an instance, its epoch for a repeat of the instance.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.file_json import decode_text
from toolbench.lab.interchange.inspect_ai.events import (
    build_answer,
    build_event,
    build_messages,
    build_output,
    build_result,
    build_usage,
)
from toolbench.lab.models import Trial
from toolbench.lab.results.trial.conversation.turns import load_expected_calls
from toolbench.lab.traces.chat_requests import parse_chat_request
from toolbench.lab.traces.reading import StepWithDetails, list_steps
from toolbench.lab.traces.removed_bodies import explain_removed_bodies

SCORER = "toolbench"
GRADES = {Trial.Outcome.PASS: "C", Trial.Outcome.FAIL: "I"}  # other outcomes have no score
MAX_SUMMARY_CHARS = 300  # of a text in the list of samples
_METADATA_COLUMNS = (
    "scenario",
    "scenario_version",
    "index",
    "outcome",
    "end",
    "failure_class",
    "cause",
    "parity_pass",
    "instance_kind",
    "instance_seed",
    "seed",
    "turns",
    "requests",
    "retries",
    "paths",
    "added_by_hand",
)


@dataclass(frozen=True, slots=True)
class SampleIdentity:
    """Identity of a sample in a log.

    Attributes:
        epoch: number of the repeat, from 1.
        model: name of the model in the log.
    """

    id: str
    epoch: int
    model: str

    @property
    def member(self) -> str:
        """Name of the archive's member with the sample."""
        return f"samples/{self.id}_epoch_{self.epoch}.json"


def build_sample_id(trial: Trial) -> str:
    """Return the id of a trial's sample, which is the same in every log for all trials of one instance.

    The published wording of a scenario is one instance.
    """
    instance = f"{trial.instance_seed}" if trial.instance_kind == "drawn" else trial.instance_kind
    return f"{trial.scenario}-{instance}"


def build_sample(trial: Trial, identity: SampleIdentity, started_at: datetime) -> JsonObject:
    """Return the sample of a finished trial.

    Args:
        trial: the trial with its run, its configuration, its steps and their bodies.
        identity: id, epoch and model of the sample.
        started_at: start of the trial, or creation of the run if the start is unknown.
    """
    steps = list_steps(trial)
    exchanges = [step for step in steps if not step.is_tool]
    successful_exchanges = [step for step in exchanges if step.step.ok]
    first_request = parse_chat_request(bytes(exchanges[0].step.body.request)) if exchanges else None
    output = (
        build_output(successful_exchanges[-1]) if successful_exchanges else {"model": identity.model, "choices": []}
    )
    usage_fields = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost")
    usage = build_usage({name: getattr(trial, name) for name in usage_fields})
    seconds = None if trial.duration_ms is None else trial.duration_ms / 1000
    return {
        "id": identity.id,
        "epoch": identity.epoch,
        "input": build_messages(first_request) if first_request else "",
        "target": _describe_target(trial),
        "messages": _build_final_messages(steps),
        "output": output | {"completion": decode_text(trial.final_text)},
        "scores": _build_scores(trial),
        "metadata": {"trial": trial.pk, "bodies": explain_removed_bodies(trial) or "kept"}
        | {name: getattr(trial, name) for name in _METADATA_COLUMNS},
        "events": [build_event(step, started_at, identity.model) for step in steps],
        "model_usage": {identity.model: usage} if exchanges else {},
        "started_at": started_at.isoformat(),
        "completed_at": trial.finished_at.isoformat() if trial.finished_at else None,
        "total_time": seconds,
        "working_time": seconds,
        "uuid": f"toolbench-trial-{trial.pk}",
        "error": _build_error(trial),
        "limit": {"type": "time", "limit": trial.run.deadline_seconds} if trial.end == "DEADLINE_EXCEEDED" else None,
        "attachments": {},
    }


def build_summary(sample: JsonObject) -> JsonObject:
    """Return the entry of a sample in the list that the log viewer reads first."""
    scores = {name: score | {"metadata": None} for name, score in (sample["scores"] or {}).items()}
    for score in scores.values():
        score |= {name: _shorten(score[name]) for name in ("answer", "explanation")}
    names = ("id", "epoch", "model_usage", "started_at", "completed_at", "total_time", "working_time", "uuid")
    user_texts = [message["content"] for message in sample["input"] or () if message["role"] == "user"]
    return {name: sample[name] for name in names} | {
        "input": _shorten("\n".join(user_texts)),
        "target": _shorten(sample["target"]),
        "metadata": sample["metadata"],
        "scores": scores or None,
        "error": sample["error"]["message"] if sample["error"] else None,
        "limit": sample["limit"]["type"] if sample["limit"] else None,
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def _describe_target(trial: Trial) -> str:
    """Return the expected calls or, if their arguments are unknown, the tools that have to be called, one a line.

    Returns:
        The lines; "no call" if no call is expected; "" if the expectation is unknown or the trial is imported.
    """
    if trial.run.imported:
        return ""
    expected, _ = load_expected_calls(trial, trial.scenario_version)
    if expected is None:
        return ""
    calls = [
        f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False, default=str) if call.arguments else ''}".strip()
        for call in expected.calls
    ]
    return "\n".join(calls or expected.tools) or ("no call" if expected.needs_call is False else "")


def _build_final_messages(steps: Sequence[StepWithDetails]) -> list[JsonObject]:
    """Return the messages of the last request, its answer if there is one, and the results of the calls in it."""
    exchanges = [step for step in steps if not step.is_tool]
    if not exchanges:
        return []
    last = exchanges[-1]
    results = [build_result(step) for step in steps if step.is_tool and step.step.turn == last.step.turn]
    answers = [build_answer(last)] if last.step.ok else []
    return [*build_messages(parse_chat_request(bytes(last.step.body.request))), *answers, *results]


def _build_scores(trial: Trial) -> dict[str, JsonObject] | None:
    if trial.outcome not in GRADES:
        return None
    checks = trial.verdict.get("checks", ())
    failed_checks = [f"{check['name']}: {check['detail']}" for check in checks if not check["ok"]]
    score: dict[str, Any] = {
        "value": GRADES[Trial.Outcome(trial.outcome)],
        "answer": decode_text(trial.final_text),
        "explanation": "\n".join(filter(None, (trial.sentence, *failed_checks))),
        "metadata": {"checks": list(checks), "rule": trial.verdict.get("rule", ""), "parity_pass": trial.parity_pass},
    }
    return {SCORER: score}


def _build_error(trial: Trial) -> JsonObject | None:
    """Return the error of a trial with an infrastructure error or of a cancelled trial; None for other trials.

    The message of a cancelled trial begins with "CancelledError(", as in logs that Inspect AI itself writes.
    """
    if trial.outcome == Trial.Outcome.INFRA:
        message = trial.sentence or "Infrastructure error."
    elif trial.outcome == Trial.Outcome.CANCELLED:
        message = f"CancelledError({trial.sentence or 'The run was cancelled.'!r})"
    else:
        return None
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SUMMARY_CHARS else f"{text[:MAX_SUMMARY_CHARS]}…"
