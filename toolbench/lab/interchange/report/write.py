"""Report of a run as files: one for each trial, the summaries, and the matrix as Markdown.

Files and fields have the names of the case study's reports, so programs that read those reports can read these files.
"""

import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from django.db.models import Prefetch

from toolbench.engine.types import JsonObject
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.interchange.file_json import encode_text, render_json_bytes
from toolbench.lab.interchange.report.findings import QuirkCounts, build_findings, findings_to_json
from toolbench.lab.interchange.report.labels import build_config_labels
from toolbench.lab.interchange.report.matrix import render_matrix
from toolbench.lab.interchange.report.rates import build_groups_json
from toolbench.lab.interchange.report.summary import (
    ConfigReport,
    build_run_mark,
    build_summary,
    sum_by_scenario,
    sum_by_scenario_and_strategy,
)
from toolbench.lab.interchange.report.trial import TrialReport, TrialReportBuilder
from toolbench.lab.interchange.streamed_file import PartWriter, iter_file_chunks
from toolbench.lab.metrics.cells import recompute_all_stale
from toolbench.lab.metrics.retries import annotate_retry_counts
from toolbench.lab.models import Cell, Run, RunConfig, Step, Trial
from toolbench.lab.traces.body_batches import load_bodies

SUMMARY_NAME = "summary.json"
BY_SCENARIO_NAME = "summary_by_scenario.json"
BY_STRATEGY_NAME = "summary_by_scenario_and_strategy.json"
MATRIX_NAME = "matrix.md"
TOOLBENCH_KEY = "toolbench"
_TRIALS_PER_BATCH = 100  # trials that are loaded at a time; `load_bodies` has batches of its own for bodies of steps


class ReportError(Exception):
    """Report or table of trials that cannot be written; the message gives the reason."""


def check_empty_folder(folder: Path) -> None:
    """Check that a folder is empty or does not exist, since files of two reports must not mix.

    Raises:
        ReportError: the folder is not empty, or the path is not a folder.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReportError(f"{folder} is not an empty folder. Name a new folder.")


def write_report(run_id: int, folder: Path) -> tuple[str, ...]:
    """Write the files of a run's report to a folder, which is created if needed, and return their names.

    Raises:
        ReportError: the folder is not empty, or the run does not exist or was deleted.
    """
    check_empty_folder(folder)
    names: list[str] = []
    for name, content in iter_report_files(run_id, output_dir=str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        names.append(name)
    return tuple(names)


def iter_report_zip(run_id: int) -> Iterator[bytes]:
    """Return an iterator over the bytes of a zip archive with the report's files, which is written while it is read.

    Raises:
        ReportError: the run does not exist or was deleted. It is raised by this call, not by the iterator.
    """
    return iter_file_chunks(partial(_write_zip, _get_run(run_id)))


def _write_zip(run: Run, file: IO[bytes]) -> PartWriter[None]:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _iter_files(run):
            archive.writestr(f"toolbench-run-{run.pk}/{name}", content)
            yield


def iter_report_files(run_id: int, *, output_dir: str | None = None) -> Iterator[tuple[str, bytes]]:
    """Return an iterator over the name and content of each file: those of the finished trials, then the summaries.

    Known secrets are masked in the contents.

    Args:
        run_id: the run.
        output_dir: folder of the report, which `summary.json` names; None if there is no folder.

    Raises:
        ReportError: the run does not exist or was deleted. It is raised by this call, not by the iterator.
    """
    return _iter_files(_get_run(run_id), output_dir)


def _iter_files(run: Run, output_dir: str | None = None) -> Iterator[tuple[str, bytes]]:
    masker = load_known_secrets().masker
    for name, content in _iter_unmasked_files(run, output_dir):
        yield name, masker.mask_body(content, join_parts=False)


def _iter_unmasked_files(run: Run, output_dir: str | None) -> Iterator[tuple[str, bytes]]:
    configs = tuple(run.configs.select_related("provider"))
    recompute_all_stale(run.pk)
    builder = TrialReportBuilder(build_config_labels(configs), run.simulated)
    totals = _ReportTotals()
    for trial in _iter_trials(run):
        report = builder.build_report(trial)
        totals.add(report)
        yield report.name, render_json_bytes(report.content)
    yield from _iter_summaries(run, totals.build_config_reports(configs, builder), totals.quirks, output_dir)


def _get_run(run_id: int) -> Run:
    run = Run.objects.filter(pk=run_id, deleted_at=None).first()
    if run is None:
        raise ReportError(f"There is no run {run_id}.")
    return run


@dataclass(slots=True)
class _ReportTotals:
    """Summary rows and quirks of a run's trials, collected while the files of the trials are written.

    Attributes:
        rows: summary rows of the trials with `is_counted`, by configuration id.
        quirks: number of trials by model, kind ("transform" or "finding") and name.
    """

    rows: dict[int, list[JsonObject]] = field(default_factory=dict)
    quirks: QuirkCounts = field(default_factory=Counter)

    def add(self, report: TrialReport) -> None:
        if report.is_counted:
            self.rows.setdefault(report.trial.config_id, []).append(report.row)
        model = report.trial.config.model_name
        self.quirks.update((model, kind, name) for kind, name in report.quirks)

    def build_config_reports(
        self, configs: Sequence[RunConfig], builder: TrialReportBuilder
    ) -> tuple[ConfigReport, ...]:
        cells: dict[int, list[Cell]] = defaultdict(list)
        for cell in configs[0].run.cells.all() if configs else ():
            cells[cell.config_id].append(cell)
        return tuple(
            ConfigReport(
                config=config,
                label=builder.labels[config.pk],
                groups=build_groups_json(cells[config.pk]),
                policy=builder.get_policy(config, ""),
                rows=self.rows.get(config.pk, []),
            )
            for config in configs
        )


def _iter_trials(run: Run) -> Iterator[Trial]:
    """Yield the finished trials with their steps and bodies, ordered by configuration, repeat and scenario."""
    steps = Prefetch("steps", Step.objects.order_by("execution", "ordinal"))
    finished_trials = run.trials.filter(state=Trial.State.DONE).select_related("config", "cell").prefetch_related(steps)
    finished_trials = annotate_retry_counts(finished_trials)
    ordered = finished_trials.order_by("config__position", "index", "cell__position")
    return load_bodies(ordered.iterator(chunk_size=_TRIALS_PER_BATCH))


def _iter_summaries(
    run: Run, reports: Sequence[ConfigReport], quirks: QuirkCounts, output_dir: str | None
) -> Iterator[tuple[str, bytes]]:
    cells = tuple(run.cells.all())
    rows = [row for report in reports for row in report.rows]
    findings = build_findings(reports, cells, quirks)
    summary = build_summary(run, reports, cells, output_dir)
    summary[TOOLBENCH_KEY]["findings"] = findings_to_json(findings)
    yield SUMMARY_NAME, render_json_bytes(summary)
    yield BY_SCENARIO_NAME, render_json_bytes(sum_by_scenario(rows) | {TOOLBENCH_KEY: build_run_mark(run)})
    yield BY_STRATEGY_NAME, render_json_bytes(sum_by_scenario_and_strategy(rows) | {TOOLBENCH_KEY: build_run_mark(run)})
    yield MATRIX_NAME, encode_text(render_matrix(run, reports, cells, findings))
