"""Factories of rows for tests, without a worker: functions with defaults for every field."""

import json
import uuid
from typing import Any

from django.utils import timezone

from toolbench.lab.metrics.cells import recompute_immediately, recompute_stale
from toolbench.lab.models import (
    Cell,
    GatewayTrace,
    Model,
    Provider,
    ProviderPace,
    PublishedCell,
    PublishedRecommendation,
    PublishedSnapshot,
    Run,
    RunConfig,
    Step,
    StepBody,
    Trial,
)
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch


def make_provider(name: str = "Example", **fields: Any) -> Provider:
    return Provider.objects.get_or_create(name=name, defaults={"base_url": "https://example.test/api"} | fields)[0]


def make_model(name: str = "vendor/model-a", *, provider: Provider | None = None, **fields: Any) -> Model:
    provider = provider or make_provider()
    return Model.objects.get_or_create(provider=provider, name=name, defaults={"canonical": name} | fields)[0]


def make_pace(provider: Provider, **fields: Any) -> ProviderPace:
    now = timezone.now()
    defaults = {"concurrency": 8, "held_until": now, "next_request_at": now, "next_token_at": now}
    return ProviderPace.objects.create(provider=provider, **(defaults | fields))


def make_run(**fields: Any) -> Run:
    defaults = {"title": "Two models, one profile", "trials_per_cell": 10, "state": Run.State.FINISHED}
    return Run.objects.create(**(defaults | fields))


def make_config(run: Run, model: Model | None = None, **fields: Any) -> RunConfig:
    """Make a configuration with the names of `model`, as a launch does."""
    model = model or make_model()
    defaults = {
        "provider": model.provider,
        "model": model,
        "provider_name": model.provider.name,
        "provider_kind": model.provider.kind,
        "model_name": model.name,
        "canonical": model.canonical,
        "service": "" if model.provider.base_url else model.provider.service,
        "layers": [["engine default", {"max_turns": 12}], ["profile", {"llm_options_defaults": {"temperature": 0.7}}]],
        "policy_hash": "4be109c7",
        "position": run.configs.count(),
    }
    return RunConfig.objects.create(run=run, **(defaults | fields))


def make_measured_config(model: Model) -> RunConfig:
    """Launch a run of 72 trials, mark all as passed, and return its configuration."""
    run = launch(RunRequest(models=(model.pk,), scenarios=("happy_path",), trials=72, instance_kind="drawn"))
    run.trials.update(state="done", outcome="pass", task_pass=True, duration_ms=100.0)
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)
    recompute_immediately(run.cells.values_list("pk", flat=True))
    return run.configs.get()


def make_cell(config: RunConfig, scenario: str = "happy_path", **fields: Any) -> Cell:
    control = scenario.startswith("chat_only")
    defaults: dict[str, Any] = {"scenario_group": "control" if control else "tools", "control": control}
    defaults |= {"instance_kind": config.run.instance_kind, "position": config.run.cells.count()}
    return Cell.objects.create(run=config.run, config=config, scenario=scenario, **(defaults | fields))


def make_trial(cell: Cell, outcome: str = "pass", **fields: Any) -> Trial:
    """Make a trial. `outcome` is the outcome of a finished trial, or "queued" or "running"."""
    index = cell.trials.count() + 1
    done = outcome not in {"queued", "running"}
    now = timezone.now()
    defaults: dict[str, Any] = {
        "provider": cell.config.provider,
        "index": index,
        "block": index,
        "position": cell.run.trials.count(),
        "scenario": cell.scenario,
        "scenario_version": cell.scenario_version,
        "instance_kind": cell.instance_kind,
        "instance_seed": index,
        "seed": index,
        "state": "done" if done else outcome,
        "outcome": outcome if done else "",
        "execution": 0 if outcome == "queued" else 1,
        "started_at": None if outcome == "queued" else now,
        "finished_at": now if done else None,
        "task_pass": {"pass": True, "fail": False}.get(outcome),
        "parity_pass": {"pass": True, "fail": False}.get(outcome),
        "answer_hash": uuid.uuid4().hex,
    }
    if done:
        defaults |= {"duration_ms": 1000.0 + 10 * index, "turns": 2, "requests": 2, "input_tokens": 400}
        defaults |= {"output_tokens": 60, "calls": 2, "valid_calls": 2, "structured_answers": 2, "calling_answers": 2}
    if outcome == "fail":
        defaults |= {"failure_class": "ASSERTION_FAILED", "sentence": "The patch was refused and never sent again."}
        defaults |= {"category": "ASSERTION_FAILED", "signature": f"ASSERTION_FAILED {cell.scenario}"}
    if outcome == "infra":
        defaults |= {"failure_class": "UPSTREAM_5XX", "sentence": "503 before any body byte."}
    return Trial.objects.create(run=cell.run, config=cell.config, cell=cell, **(defaults | fields))


def make_trials(cell: Cell, **counts: int) -> list[Trial]:
    """Make trials by outcome, such as `**{"pass": 8, "fail": 2}`, and recount the cell."""
    trials = [make_trial(cell, outcome) for outcome, count in counts.items() for _ in range(count)]
    recompute_stale_cells()
    return trials


def make_step(trial: Trial, *, kind: str = "exchange", bodies: dict[str, Any] | None = None, **fields: Any) -> Step:
    """Make a step with its bodies: `request` and `response` are bytes, `facts` is a JSON value."""
    defaults: dict[str, Any] = {"execution": trial.execution, "ordinal": trial.steps.count(), "kind": kind, "turn": 0}
    defaults |= {"started_ms": 0.0, "duration_ms": 120.0, "ok": True}
    step = Step.objects.create(trial=trial, **(defaults | fields))
    bodies = bodies or {}
    StepBody.objects.create(
        step=step,
        request=bodies.get("request", b"{}"),
        response=bodies.get("response", b"{}"),
        facts=json.dumps(bodies.get("facts", {})).encode(),
    )
    return step


def make_published_snapshot(*cells: tuple[str, str, int, int], **fields: Any) -> PublishedSnapshot:
    """Make a published snapshot. `cells` are (model, profile, tool_ok of 40, control_ok of 10)."""
    tool_ok, control_ok = sum(cell[2] for cell in cells), sum(cell[3] for cell in cells)
    tool_runs, control_runs = 40 * len(cells), 10 * len(cells)
    totals = {"overall": [tool_ok + control_ok, tool_runs + control_runs], "tool": [tool_ok, tool_runs]}
    totals["control"] = [control_ok, control_runs]
    defaults = {"slug": "published", "title": "Case study", "source": "elsewhere", "published": "2026-02", "trials": 10}
    snapshot = PublishedSnapshot.objects.create(
        **(defaults | {"totals": totals, "scenarios": {"happy_path": [tool_ok, tool_runs]}} | fields)
    )
    for position, (model, profile, ok, control) in enumerate(cells):
        failures = [{"name": "long_arguments_guard", "count": 40 - ok}] if ok < 40 else []
        PublishedCell.objects.create(
            snapshot=snapshot, model=model, profile=profile, tool_ok=ok, tool_runs=40, control_ok=control,
            control_runs=10, p95_ms=12_345, failures=failures, not_applicable=not ok, position=position,
        )  # fmt: skip
        PublishedRecommendation.objects.create(
            snapshot=snapshot, model=model, profile=profile, parameters="no overrides", recommended="Conditional",
            notes="As the publication words it.", position=position,
        )  # fmt: skip
    return snapshot


def recompute_stale_cells() -> None:
    while recompute_stale():
        pass


def make_gateway_trace(**fields: Any) -> GatewayTrace:
    defaults = {"alias": "kept", "dialect": "chat", "at": timezone.now(), "status": 200, "duration_ms": 5.0}
    return GatewayTrace.objects.create(**(defaults | fields))
