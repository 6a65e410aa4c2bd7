"""Writing a bundle: evidence first, then what was made of it, the pages, and the manifest with every hash."""

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, TypeVar

from django.db.models import BinaryField, Model
from django.utils import timezone

from toolbench.engine.messages import JsonObject
from toolbench.lab.credentials.known_secrets import known_secrets
from toolbench.lab.engine_version import engine_version
from toolbench.lab.interchange.bundle.pages import STYLE, TrialLine, index_page, style, trace_page, trial_line
from toolbench.lab.interchange.bundle.plans import plans_json
from toolbench.lab.interchange.bundle.selection import Chosen, choose
from toolbench.lab.interchange.bundle.statistics import config_lines, matrix_json, statistics_json
from toolbench.lab.interchange.bundled_cases import cases_json
from toolbench.lab.interchange.file_json import json_bytes
from toolbench.lab.interchange.manifest import (
    CASES,
    INDEX,
    MANIFEST,
    RUN,
    LeftOut,
    Manifest,
    Member,
    evidence_hash,
    member_of,
    trace_member,
    trial_member,
)
from toolbench.lab.interchange.row_json import row_json
from toolbench.lab.interchange.spooled_file import Written, in_pieces, whole
from toolbench.lab.models import Run, Step, StepBody, Trial
from toolbench.providers.masking.secrets import Masker

Row = TypeVar("Row", bound=Model)
_NEVER = (1980, 1, 1, 0, 0, 0)  # equal evidence makes equal members


def write_bundle(run_id: int, file: IO[bytes], *, private: bool = False) -> Manifest:
    """Writes the whole bundle into `file`. Raises BundleRefused before anything is written."""
    return whole(_written(choose(run_id, private=private), file))


def bundle_pieces(run_id: int, *, private: bool = False) -> Iterator[bytes]:
    """The bundle, piece by piece while it is written. Raises BundleRefused at once."""
    return in_pieces(partial(_written, choose(run_id, private=private)))


def _written(chosen: Chosen, file: IO[bytes]) -> Written[Manifest]:
    redaction = known_secrets()
    unread = tuple(
        LeftOut(f"a second search for the key of {name}", "it cannot be unlocked; it was masked when it was stored")
        for name in redaction.unread
    )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        return (
            yield from _write(_Open(archive, redaction.masker), replace(chosen, left_out=(*chosen.left_out, *unread)))
        )


@dataclass(slots=True)
class _Open:
    archive: zipfile.ZipFile
    masker: Masker
    members: dict[str, Member] = field(default_factory=dict)

    def add(self, name: str, content: bytes) -> None:
        masked = self.masker.mask_body(content, parts=False)
        self.members[name] = member_of(masked)
        self.put(name, masked)

    def put(self, name: str, content: bytes) -> None:
        info = zipfile.ZipInfo(name, _NEVER)
        info.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(info, content)


def _write(out: _Open, chosen: Chosen) -> Written[Manifest]:
    out.add(RUN, json_text(_run(chosen)))
    if chosen.cases:
        out.add(CASES, json_text(cases_json(chosen.cases)))
    places = _Places.of(chosen)
    listed: list[TrialLine] = []
    for number, trial in enumerate(chosen.trials(), start=1):
        steps = _masked(trial, out.masker)
        out.add(trial_member(number), json_text(places.trial(trial, steps)))
        out.add(trace_member(number), trace_page(chosen.run, trial, steps, number))
        listed.append(trial_line(trial, number))
        yield
    lines = config_lines(chosen)
    out.add("matrix.json", json_bytes(matrix_json(lines)))
    out.add("statistics.json", json_bytes(statistics_json(lines)))
    out.add("plans.json", json_bytes(plans_json(chosen)))
    out.add(STYLE, style().encode())
    manifest = Manifest(
        made_at=timezone.now().isoformat(timespec="seconds"),
        source=_source(chosen.run),
        members=out.members,
        left_out=chosen.left_out,
        evidence=evidence_hash(out.members),
    )
    out.add(INDEX, index_page(chosen, lines, listed, manifest))
    out.put(MANIFEST, out.masker.mask_body(manifest.text(), parts=False))
    return manifest


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a configuration or a cell stands in the bundle: ids mean nothing elsewhere."""

    configs: dict[int, int]
    cells: dict[int, int]

    @classmethod
    def of(cls, chosen: Chosen) -> "_Places":
        configs = {config.pk: place for place, config in enumerate(chosen.configs)}
        return cls(configs, {cell.pk: place for place, cell in enumerate(chosen.cells)})

    def trial(self, trial: Trial, steps: "tuple[Step, ...]") -> JsonObject:
        return {
            "config": self.configs[trial.config_id],
            "cell": self.cells[trial.cell_id],
            "trial": row_json(trial),
            "judgements": [row_json(one) for one in trial.judgements.all()],
            "steps": [{"step": row_json(step), "body": row_json(step.body)} for step in steps],
        }


def _run(chosen: Chosen) -> JsonObject:
    places = {config.pk: place for place, config in enumerate(chosen.configs)}
    run = row_json(chosen.run)
    if chosen.run.state not in Run.ENDED:
        run |= {"state": Run.State.CANCELLED, "stopped_reason": "It was still going on when its bundle was written."}
    return {
        "run": run,
        "configs": [row_json(config) for config in chosen.configs],
        "private": sorted(chosen.private),
        "cells": [{"config": places[cell.config_id], "cell": row_json(cell)} for cell in chosen.cells],
    }


def _masked(trial: Trial, masker: Masker) -> tuple[Step, ...]:
    """Search the bytes of the trial and of its steps once more for every key known now. Returns the steps."""
    steps = tuple(trial.steps.all())
    for step in steps:
        step.body = _masked_bytes(step.body if hasattr(step, "body") else StepBody(step=step), masker)
    _masked_bytes(trial, masker)
    return steps


def _masked_bytes(row: Row, masker: Masker) -> Row:
    """Mask bytes before they are packed, since base64 is no place for stars."""
    for column in row._meta.concrete_fields:
        if isinstance(column, BinaryField) and (value := getattr(row, column.name)):
            setattr(row, column.name, masker.mask_body(bytes(value)))
    return row


def _source(run: Run) -> JsonObject:
    """Which run this is where the bundle was written, and where that one came from."""
    before = {name: run.origin.get(name) for name in ("kind", "sha256", "made_at", "source")}
    return {
        "run": run.pk,
        "title": str(run),
        "simulated": run.simulated,
        "written_by_engine": engine_version(),
        "imported_from": before if run.imported else None,
    }


def json_text(value: object) -> bytes:
    """Compact, ASCII, in the order given: equal rows give equal bytes."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
