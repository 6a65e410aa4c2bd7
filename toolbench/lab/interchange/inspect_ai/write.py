"""Export of a run as logs of Inspect AI, one for each configuration. `inspect view` shows a folder of logs."""

import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO

from toolbench.engine.types import JsonObject
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.interchange.bundle.selection import BundleSelection, select_for_bundle
from toolbench.lab.interchange.file_json import render_masked_json
from toolbench.lab.interchange.inspect_ai.events import build_generate_config
from toolbench.lab.interchange.inspect_ai.log import HEADER_NAME, START_NAME
from toolbench.lab.interchange.inspect_ai.samples import (
    GRADES,
    SCORER,
    SampleIdentity,
    build_sample,
    build_sample_id,
    build_summary,
)
from toolbench.lab.interchange.report.labels import ConfigLabel, build_config_labels, sanitise_file_name
from toolbench.lab.interchange.report.write import check_empty_folder
from toolbench.lab.interchange.streamed_file import PartWriter, iter_file_chunks, run_writer
from toolbench.lab.models import Provider, Run, RunConfig, Trial
from toolbench.providers.masking.secrets import Masker

LOG_VERSION = 2  # of the log format of Inspect AI
SUMMARIES_NAME = "summaries.json"
_STATUS_BY_STATE = {Run.State.FINISHED: "success", Run.State.CANCELLED: "cancelled", Run.State.CANCELLING: "cancelled"}
_NON_SLUG_CHARS = re.compile(r"[^a-z0-9.]+")


def iter_log_zip(run_id: int, *, private: bool = False) -> Iterator[bytes]:
    """Return an iterator that writes the logs of a run and yields the bytes of a zip archive with them.

    Args:
        run_id: the run.
        private: whether private scenarios are included.

    Raises:
        BundleError: there is no such run, or no scenario would be left. It is raised by this call, not by the iterator.
    """
    return iter_file_chunks(partial(_write_zip, select_for_bundle(run_id, private=private)))


def write_logs(run_id: int, folder: Path, *, private: bool = False) -> tuple[str, ...]:
    """Write the logs of a run to a folder, which is created if needed, and return the names of the files.

    Raises:
        BundleError: there is no such run, or no scenario would be left.
        ReportError: the folder is not empty.
    """
    selection = select_for_bundle(run_id, private=private)
    check_empty_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    masker = load_known_secrets().masker
    names = []
    for log in _list_logs(selection, masker):
        with (folder / log.file_name).open("xb") as file:
            run_writer(log.write(file))
        names.append(log.file_name)
    return tuple(names)


def _write_zip(selection: BundleSelection, file: IO[bytes]) -> PartWriter[None]:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for log in _list_logs(selection, load_known_secrets().masker):
            with archive.open(log.file_name, "w", force_zip64=True) as member:
                yield from log.write(member)


def _list_logs(selection: BundleSelection, masker: Masker) -> list["_ConfigLog"]:
    labels = build_config_labels(selection.configs)
    return [
        _ConfigLog(
            replace(selection, cells=tuple(cell for cell in selection.cells if cell.config_id == config.pk)),
            config,
            labels[config.pk],
            masker,
        )
        for config in selection.configs
    ]


@dataclass(slots=True)
class _ConfigLog:
    """Log of one configuration.

    Attributes:
        selection: rows of the run, with only the cells of this configuration.
        epochs: number of written samples, by sample id.
        outcomes: number of written samples, by outcome.
        summaries: JSON of the summary of each written sample.
        usage: total usage of the written samples, by its name in the log.
    """

    selection: BundleSelection
    config: RunConfig
    label: ConfigLabel
    masker: Masker
    epochs: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    summaries: list[bytes] = field(default_factory=list)
    usage: Counter[str] = field(default_factory=Counter)

    @property
    def file_name(self) -> str:
        """Name in the form of Inspect AI, such as `2026-11-26T09-30-00_run-7_01-llama.eval`."""
        run = self.selection.run
        label = sanitise_file_name(self.label.label).replace("_", "-")[:80]
        return f"{run.created_at:%Y-%m-%dT%H-%M-%S}_run-{run.pk}_{self.config.position + 1:02}-{label}.eval"

    @property
    def model(self) -> str:
        """Name of the provider and name of the model, such as `my-server/llama`."""
        return f"{_NON_SLUG_CHARS.sub('-', self.config.provider_name.lower()).strip('-')}/{self.config.model_name}"

    def write(self, file: IO[bytes]) -> PartWriter[None]:
        """Write the log to a stream, and yield after each sample."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for trial in self.selection.iter_trials():
                self._write_sample(archive, trial)
                yield
            spec = self._build_spec()
            plan = self._build_plan()
            self._add(archive, START_NAME, {"version": LOG_VERSION, "eval": spec, "plan": plan})
            archive.writestr(SUMMARIES_NAME, b"[" + b",".join(self.summaries) + b"]")
            self._add(archive, HEADER_NAME, self._build_header(spec, plan))

    def _write_sample(self, archive: zipfile.ZipFile, trial: Trial) -> None:
        sample_id = build_sample_id(trial)
        self.epochs[sample_id] += 1
        identity = SampleIdentity(sample_id, self.epochs[sample_id], self.model)
        sample = build_sample(trial, identity, trial.started_at or self.selection.run.created_at)
        self._add(archive, identity.member, sample)
        self.summaries.append(self._render(build_summary(sample)))
        self.outcomes[trial.outcome] += 1
        self.usage.update({name: value for name, value in sample["model_usage"].get(self.model, {}).items() if value})

    def _add(self, archive: zipfile.ZipFile, name: str, value: JsonObject) -> None:
        archive.writestr(name, self._render(value))

    def _render(self, value: JsonObject) -> bytes:
        return render_masked_json(value, self.masker)

    def _build_spec(self) -> JsonObject:
        run, config = self.selection.run, self.config
        tags = {"simulated": self._is_simulated, "imported": run.imported}
        return {
            "eval_id": f"toolbench-run-{run.pk}-configuration-{config.pk}",
            "run_id": f"toolbench-run-{run.pk}",
            "created": run.created_at.isoformat(),
            "task": str(run),
            "task_id": f"toolbench-run-{run.pk}-{config.position + 1}",
            "task_version": 0,
            "task_display_name": f"{run}: {self.label.label}{' (simulated)' if self._is_simulated else ''}",
            "task_args": self._list_settings(),
            "tags": ["toolbench", *(name for name, is_set in tags.items() if is_set)],
            "dataset": {"name": str(run), "samples": len(self.epochs), "sample_ids": sorted(self.epochs)},
            "model": self.model,
            "model_generate_config": build_generate_config(config.options),
            "config": {"epochs": max(self.epochs.values(), default=1), "time_limit": int(run.deadline_seconds)},
            "scorers": [{"name": SCORER}],
            "metadata": {
                "source": "Toolbench",
                "engine_version": run.engine_version,
                "simulated": self._is_simulated,
                "true_success_rates": config.true_rates or None,
                "policy_hash": config.policy_hash,
                "left_out": [{"what": item.what, "why": item.why} for item in self.selection.left_out],
            },
        }

    @property
    def _is_simulated(self) -> bool:
        return self.config.provider_kind == Provider.Kind.SIMULATED

    def _list_settings(self) -> JsonObject:
        names = ("provider_name", "model_name", "profile", "strategy", "method", "examples", "stream", "tool_use_mode")
        return {name: getattr(self.config, name) for name in names}

    def _build_plan(self) -> JsonObject:
        return {"name": "toolbench", "steps": [{"solver": "toolbench", "params": self._list_settings()}]}

    def _build_header(self, spec: JsonObject, plan: JsonObject) -> JsonObject:
        run = self.selection.run
        total = self.outcomes.total()
        completed = total - self.outcomes[Trial.Outcome.INFRA] - self.outcomes[Trial.Outcome.CANCELLED]
        return {
            "version": LOG_VERSION,
            "status": _STATUS_BY_STATE.get(Run.State(run.state), "started"),
            "eval": spec,
            "plan": plan,
            "results": {"total_samples": total, "completed_samples": completed, "scores": [self._build_score()]},
            "stats": {
                "started_at": run.created_at.isoformat(),
                "completed_at": run.finished_at.isoformat() if run.finished_at else "",
                "model_usage": {self.model: dict(self.usage)},
            },
        }

    def _build_score(self) -> JsonObject:
        """Return the score of the log. Its accuracy is the share of the samples with a verdict that passed."""
        scored = sum(self.outcomes[outcome] for outcome in GRADES)
        passed = self.outcomes[Trial.Outcome.PASS]
        metrics: JsonObject = {"accuracy": {"name": "accuracy", "value": passed / scored}} if scored else {}
        return {
            "name": SCORER,
            "scorer": SCORER,
            "scored_samples": scored,
            "unscored_samples": self.outcomes.total() - scored,
            "metrics": metrics,
        }
