"""Import of a bundle as a new run."""

from collections.abc import Iterator
from typing import IO, Any

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from toolbench.evals.statistics.stopping import StoppingRule, StoppingRuleError
from toolbench.lab.interchange.bundled_cases import parse_cases
from toolbench.lab.interchange.create_run import (
    NewCell,
    NewRun,
    NewStep,
    NewTrial,
    OnProgress,
    check_not_imported,
    create_run,
    ignore_progress,
)
from toolbench.lab.interchange.manifest import CASES_NAME, RUN_NAME, TRIALS_FOLDER, Manifest
from toolbench.lab.interchange.origin import Origin
from toolbench.lab.interchange.plausible_figures import FigureReader
from toolbench.lab.interchange.row_json import InvalidRowError, parse_row
from toolbench.lab.interchange.safe_zip import (
    Archive,
    RunImportError,
    UnpackLimits,
    list_evidence_names,
    open_zip,
    read_checked_manifest,
    read_json_member,
)
from toolbench.lab.models import Cell, Judgement, Run, RunConfig, Step, StepBody, Trial
from toolbench.lab.traces.step_facts import to_column_text

DEFAULT_LIMITS = UnpackLimits()


def import_bundle(
    file: IO[bytes],
    file_name: str,
    *,
    owner: AbstractBaseUser | None,
    limits: UnpackLimits = DEFAULT_LIMITS,
    progress: OnProgress = ignore_progress,
) -> Run:
    """Import a bundle. After an error nothing is stored.

    Args:
        file: the open file.
        file_name: name of the file, of which the first 200 characters are stored.
        owner: owner of the new run; None without sign-in.
        limits: maximum sizes of the unpacked file.
        progress: called after each batch of trials.

    Raises:
        RunImportError: the file cannot be imported, or its evidence was imported before.
    """
    with open_zip(file, limits) as archive:
        manifest = read_checked_manifest(archive)
        check_not_imported(manifest.evidence)
        try:
            run_document = read_json_member(archive, RUN_NAME)
            new_run = _parse_run(run_document, archive, manifest)
            return create_run(new_run, _build_origin(manifest, file_name, run_document), owner=owner, progress=progress)
        except InvalidRowError as error:
            raise RunImportError(f"A row cannot be read: {error}. Nothing was imported.") from error


def _build_origin(manifest: Manifest, file_name: str, run_document: dict[str, Any]) -> Origin:
    return Origin(
        kind="bundle",
        sha256=manifest.evidence,
        file=to_column_text(file_name, 200),
        source=manifest.source,
        made_at=manifest.made_at,
        imported_at=timezone.now().isoformat(timespec="seconds"),
        private=_parse_private(run_document),
        left_out=tuple({"what": item.what, "why": item.why} for item in manifest.left_out),
    )


def _parse_run(run_document: dict[str, Any], archive: Archive, manifest: Manifest) -> NewRun:
    figure_reader = FigureReader()
    run = parse_row(Run, run_document.get("run"), figure_reader)
    try:
        StoppingRule.from_json(run.get("until", {}))
    except (StoppingRuleError, TypeError) as error:
        raise InvalidRowError(f"the run's stopping rule: {error}") from error
    return NewRun(
        run=run,
        configs=tuple(parse_row(RunConfig, row, figure_reader) for row in _parse_list(run_document, "configs")),
        cells=tuple(
            NewCell(_parse_position(row, "config"), parse_row(Cell, row.get("cell"), figure_reader))
            for row in _parse_list(run_document, "cells")
        ),
        trials=_iter_trials(archive, manifest, figure_reader),
        figure_reader=figure_reader,
        trial_count=sum(name.startswith(TRIALS_FOLDER) for name in manifest.members),
        cases=parse_cases(read_json_member(archive, CASES_NAME)) if CASES_NAME in manifest.members else (),
    )


def _iter_trials(archive: Archive, manifest: Manifest, figure_reader: FigureReader) -> Iterator[NewTrial]:
    """Yield the trials in the order of their members' names; a member is read when its trial is due."""
    for name in list_evidence_names(manifest):
        if name.startswith(TRIALS_FOLDER):
            yield _parse_trial(name, read_json_member(archive, name), figure_reader)


def _parse_trial(name: str, document: dict[str, Any], figure_reader: FigureReader) -> NewTrial:
    try:
        steps = tuple(
            NewStep(
                parse_row(Step, row.get("step"), figure_reader), parse_row(StepBody, row.get("body"), figure_reader)
            )
            for row in _parse_list(document, "steps")
        )
        return NewTrial(
            config=_parse_position(document, "config"),
            cell=_parse_position(document, "cell"),
            trial=parse_row(Trial, document.get("trial"), figure_reader),
            steps=steps,
            judgements=tuple(parse_row(Judgement, row, figure_reader) for row in _parse_list(document, "judgements")),
        )
    except InvalidRowError as error:
        raise InvalidRowError(f"{name}: {error}") from error


def _parse_private(run_document: dict[str, Any]) -> tuple[str, ...]:
    slugs = run_document.get("private") or []
    if not isinstance(slugs, list):
        raise InvalidRowError("private is not a list")
    return tuple(map(str, slugs))


def _parse_list(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = document.get(name)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidRowError(f"{name} is not a list of objects")
    return items


def _parse_position(document: dict[str, Any], name: str) -> int:
    position = document.get(name)
    if not isinstance(position, int) or isinstance(position, bool):
        raise InvalidRowError(f"{name} is not a position in a list")
    return position
