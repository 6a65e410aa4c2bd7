"""Importing a bundle: a run in a scope of its own, equal to the one that was written, row for row."""

from collections.abc import Iterator
from typing import IO, Any

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from toolbench.evals.statistics.stopping import Until, UntilRefused
from toolbench.lab.interchange.bundled_cases import read_cases
from toolbench.lab.interchange.create_run import (
    CellSeed,
    Progress,
    RunSeed,
    StepSeed,
    TrialSeed,
    plant,
    refuse_twice,
    unwatched,
)
from toolbench.lab.interchange.manifest import CASES, RUN, TRIALS, Manifest
from toolbench.lab.interchange.origin import Origin
from toolbench.lab.interchange.plausible_figures import FigureCheck
from toolbench.lab.interchange.row_json import BadRow, row_columns
from toolbench.lab.interchange.safe_zip import (
    Archive,
    Caps,
    ImportRefused,
    checked_manifest,
    evidence_names,
    open_zip,
    read_object,
)
from toolbench.lab.models import Cell, Judgement, Run, RunConfig, Step, StepBody, Trial

USUAL = Caps()


def import_bundle(
    file: IO[bytes],
    name: str,
    *,
    owner: AbstractBaseUser | None,
    caps: Caps = USUAL,
    progress: Progress = unwatched,
) -> Run:
    """`name` is what the file is called. Raises ImportRefused; then nothing is kept."""
    with open_zip(file, caps) as archive:
        manifest = checked_manifest(archive)
        refuse_twice(manifest.evidence)
        try:
            whole = read_object(archive, RUN)
            seed = _run(whole, archive, manifest)
            return plant(seed, _origin(manifest, name, whole), owner=owner, progress=progress)
        except BadRow as error:
            raise ImportRefused(f"A row cannot be read: {error}. Nothing was imported.") from error


def _origin(manifest: Manifest, name: str, whole: dict[str, Any]) -> Origin:
    return Origin(
        kind="bundle",
        sha256=manifest.evidence,
        file=name[:200],
        source=manifest.source,
        made_at=manifest.made_at,
        imported_at=timezone.now().isoformat(timespec="seconds"),
        private=_private(whole),
        left_out=tuple({"what": one.what, "why": one.why} for one in manifest.left_out),
    )


def _run(whole: dict[str, Any], archive: Archive, manifest: Manifest) -> RunSeed:
    check = FigureCheck()
    run = row_columns(Run, whole.get("run"), check)
    try:
        Until.read(run.get("until", {}))
    except (UntilRefused, TypeError) as error:
        raise BadRow(f"the run's stopping rule: {error}") from error
    return RunSeed(
        run=run,
        configs=tuple(row_columns(RunConfig, one, check) for one in _list(whole, "configs")),
        cells=tuple(
            CellSeed(_place(one, "config"), row_columns(Cell, one.get("cell"), check)) for one in _list(whole, "cells")
        ),
        trials=_trials(archive, manifest, check),
        figures=check,
        count=sum(name.startswith(TRIALS) for name in manifest.members),
        cases=read_cases(read_object(archive, CASES)) if CASES in manifest.members else (),
    )


def _trials(archive: Archive, manifest: Manifest, check: FigureCheck) -> Iterator[TrialSeed]:
    """Read while they are stored, some at a time."""
    for name in evidence_names(manifest):
        if name.startswith(TRIALS):
            yield _trial(name, read_object(archive, name), check)


def _trial(name: str, given: dict[str, Any], check: FigureCheck) -> TrialSeed:
    try:
        steps = tuple(
            StepSeed(row_columns(Step, one.get("step"), check), row_columns(StepBody, one.get("body"), check))
            for one in _list(given, "steps")
        )
        return TrialSeed(
            config=_place(given, "config"),
            cell=_place(given, "cell"),
            trial=row_columns(Trial, given.get("trial"), check),
            steps=steps,
            judgements=tuple(row_columns(Judgement, one, check) for one in _list(given, "judgements")),
        )
    except BadRow as error:
        raise BadRow(f"{name}: {error}") from error


def _private(whole: dict[str, Any]) -> tuple[str, ...]:
    found = whole.get("private") or []
    if not isinstance(found, list):
        raise BadRow("private is no list")
    return tuple(map(str, found))


def _list(given: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = given.get(name)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadRow(f"{name} is no list of objects")
    return found


def _place(given: dict[str, Any], name: str) -> int:
    found = given.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise BadRow(f"{name} is no place in a list")
    return found
