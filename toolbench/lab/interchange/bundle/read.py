"""Import of a bundle: its rows become a new run, equal to the exported one."""

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

DEFAULT_LIMITS = UnpackLimits()


def import_bundle(
    file: IO[bytes],
    name: str,
    *,
    owner: AbstractBaseUser | None,
    caps: UnpackLimits = DEFAULT_LIMITS,
    progress: OnProgress = ignore_progress,
) -> Run:
    """Import a bundle; after an error nothing is stored.

    Args:
        file: the open file.
        name: name of the file.
        owner: owner of the new run, or None.
        caps: limits of what the file may unpack to.
        progress: called after each batch of trials.

    Raises:
        RunImportError: the file cannot be imported.
    """
    with open_zip(file, caps) as archive:
        manifest = read_checked_manifest(archive)
        check_not_imported(manifest.evidence)
        try:
            whole = read_json_member(archive, RUN_NAME)
            seed = _parse_run(whole, archive, manifest)
            return create_run(seed, _build_origin(manifest, name, whole), owner=owner, progress=progress)
        except InvalidRowError as error:
            raise RunImportError(f"A row cannot be read: {error}. Nothing was imported.") from error


def _build_origin(manifest: Manifest, name: str, whole: dict[str, Any]) -> Origin:
    return Origin(
        kind="bundle",
        sha256=manifest.evidence,
        file=name[:200],
        source=manifest.source,
        made_at=manifest.made_at,
        imported_at=timezone.now().isoformat(timespec="seconds"),
        private=_parse_private(whole),
        left_out=tuple({"what": item.what, "why": item.why} for item in manifest.left_out),
    )


def _parse_run(whole: dict[str, Any], archive: Archive, manifest: Manifest) -> NewRun:
    check = FigureReader()
    run = parse_row(Run, whole.get("run"), check)
    try:
        StoppingRule.read(run.get("until", {}))
    except (StoppingRuleError, TypeError) as error:
        raise InvalidRowError(f"the run's stopping rule: {error}") from error
    return NewRun(
        run=run,
        configs=tuple(parse_row(RunConfig, row, check) for row in _parse_list(whole, "configs")),
        cells=tuple(
            NewCell(_parse_position(row, "config"), parse_row(Cell, row.get("cell"), check))
            for row in _parse_list(whole, "cells")
        ),
        trials=_iter_trials(archive, manifest, check),
        figures=check,
        trial_count=sum(name.startswith(TRIALS_FOLDER) for name in manifest.members),
        cases=parse_cases(read_json_member(archive, CASES_NAME)) if CASES_NAME in manifest.members else (),
    )


def _iter_trials(archive: Archive, manifest: Manifest, check: FigureReader) -> Iterator[NewTrial]:
    """Yield the trials one by one; each is read when it is needed."""
    for name in list_evidence_names(manifest):
        if name.startswith(TRIALS_FOLDER):
            yield _parse_trial(name, read_json_member(archive, name), check)


def _parse_trial(name: str, given: dict[str, Any], check: FigureReader) -> NewTrial:
    try:
        steps = tuple(
            NewStep(parse_row(Step, row.get("step"), check), parse_row(StepBody, row.get("body"), check))
            for row in _parse_list(given, "steps")
        )
        return NewTrial(
            config=_parse_position(given, "config"),
            cell=_parse_position(given, "cell"),
            trial=parse_row(Trial, given.get("trial"), check),
            steps=steps,
            judgements=tuple(parse_row(Judgement, row, check) for row in _parse_list(given, "judgements")),
        )
    except InvalidRowError as error:
        raise InvalidRowError(f"{name}: {error}") from error


def _parse_private(whole: dict[str, Any]) -> tuple[str, ...]:
    found = whole.get("private") or []
    if not isinstance(found, list):
        raise InvalidRowError("private is no list")
    return tuple(map(str, found))


def _parse_list(given: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = given.get(name)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise InvalidRowError(f"{name} is no list of objects")
    return found


def _parse_position(given: dict[str, Any], name: str) -> int:
    found = given.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise InvalidRowError(f"{name} is no place in a list")
    return found
