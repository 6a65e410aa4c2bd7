"""Export of a run as a bundle with evidence, statistics, plans, pages and a manifest."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, TypeVar

from django.db.models import BinaryField, Model
from django.utils import timezone

from toolbench.engine.types import JsonObject
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.engine_version import compute_engine_version
from toolbench.lab.interchange.bundle.pages import (
    STYLE_NAME,
    BundledTrialRow,
    build_trial_row,
    load_style,
    render_index,
    render_trace,
)
from toolbench.lab.interchange.bundle.plans import build_plans_json
from toolbench.lab.interchange.bundle.selection import BundleSelection, select_for_bundle
from toolbench.lab.interchange.bundle.statistics import (
    build_matrix_json,
    build_statistics_json,
    compute_config_statistics,
)
from toolbench.lab.interchange.bundled_cases import cases_to_json
from toolbench.lab.interchange.file_json import render_json_bytes
from toolbench.lab.interchange.manifest import (
    CASES_NAME,
    INDEX_NAME,
    MANIFEST_NAME,
    RUN_NAME,
    LeftOutItem,
    Manifest,
    Member,
    build_member,
    build_trace_name,
    build_trial_name,
    hash_evidence,
)
from toolbench.lab.interchange.row_json import row_to_json
from toolbench.lab.interchange.streamed_file import PartWriter, iter_file_chunks, run_writer
from toolbench.lab.metrics.spending import find_prices
from toolbench.lab.models import Run, RunConfig, Step, StepBody, Trial
from toolbench.providers.masking.secrets import Masker

_Row = TypeVar("_Row", bound=Model)
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # date of all members, so that equal contents give equal archives


def write_bundle(run_id: int, file: IO[bytes], *, private: bool = False) -> Manifest:
    """Write the bundle of a run into `file` and return its manifest.

    Args:
        run_id: the run.
        file: an open file, which does not have to be seekable.
        private: whether private scenarios are included.

    Raises:
        BundleError: there is no such run, or the bundle would have no cell. Nothing has been written then.
    """
    return run_writer(_write_archive(select_for_bundle(run_id, private=private), file))


def iter_bundle_chunks(run_id: int, *, private: bool = False) -> Iterator[bytes]:
    """Return an iterator that yields the bytes of a run's bundle while the bundle is written.

    Raises:
        BundleError: see `write_bundle`. It is raised by this call, not by the iterator.
    """
    return iter_file_chunks(partial(_write_archive, select_for_bundle(run_id, private=private)))


def _write_archive(selection: BundleSelection, file: IO[bytes]) -> PartWriter[Manifest]:
    """Write the archive and yield after each trial.

    The list of left-out data gets an entry for each provider with a secret that cannot be read and so is not masked
    again.
    """
    known_secrets = load_known_secrets()
    unreadable_key_items = tuple(
        LeftOutItem(
            f"a second masking of the key of {name}", "the key cannot be read; it was masked when it was stored"
        )
        for name in known_secrets.unreadable_providers
    )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        return (
            yield from _write_members(
                _BundleArchive(archive, known_secrets.masker),
                replace(selection, left_out=(*selection.left_out, *unreadable_key_items)),
            )
        )


@dataclass(slots=True)
class _BundleArchive:
    """Archive to which the members of a bundle are written.

    Attributes:
        masker: masker of all known secrets.
        members: hash and size of each member that `add` wrote, by its name.
    """

    archive: zipfile.ZipFile
    masker: Masker
    members: dict[str, Member] = field(default_factory=dict)

    def add(self, name: str, content: bytes) -> None:
        """Mask secrets in a member, write the member and list it in `members`."""
        masked = self.masker.mask_body(content, join_parts=False)
        self.members[name] = build_member(masked)
        self.add_unlisted(name, masked)

    def add_unlisted(self, name: str, content: bytes) -> None:
        """Write a member as it is, without listing it in `members`."""
        info = zipfile.ZipInfo(name, _FIXED_TIME)
        info.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(info, content)


def _write_members(bundle_archive: _BundleArchive, selection: BundleSelection) -> PartWriter[Manifest]:
    """Write all members and yield after each trial; the last member is the manifest, which lists the others."""
    positions = _BundlePositions.build(selection)
    bundle_archive.add(RUN_NAME, _render_compact_json(_run_to_json(selection, positions)))
    if selection.cases:
        bundle_archive.add(CASES_NAME, _render_compact_json(cases_to_json(selection.cases)))
    trial_rows: list[BundledTrialRow] = []
    for number, trial in enumerate(selection.iter_trials(), start=1):
        steps = _mask_steps(trial, bundle_archive.masker)
        bundle_archive.add(build_trial_name(number), _render_compact_json(positions.trial_to_json(trial, steps)))
        bundle_archive.add(build_trace_name(number), render_trace(selection.run, trial, steps, number))
        trial_rows.append(build_trial_row(trial, number))
        yield
    config_statistics = compute_config_statistics(selection)
    bundle_archive.add("matrix.json", render_json_bytes(build_matrix_json(config_statistics)))
    bundle_archive.add("statistics.json", render_json_bytes(build_statistics_json(config_statistics)))
    bundle_archive.add("plans.json", render_json_bytes(build_plans_json(selection)))
    bundle_archive.add(STYLE_NAME, load_style().encode())
    manifest = Manifest(
        made_at=timezone.now().isoformat(timespec="seconds"),
        source=_build_source(selection.run),
        members=bundle_archive.members,
        left_out=selection.left_out,
        evidence=hash_evidence(bundle_archive.members),
    )
    bundle_archive.add(INDEX_NAME, render_index(selection, config_statistics, trial_rows, manifest))
    bundle_archive.add_unlisted(MANIFEST_NAME, bundle_archive.masker.mask_body(manifest.to_bytes(), join_parts=False))
    return manifest


@dataclass(frozen=True, slots=True)
class _BundlePositions:
    """Positions of configurations and cells in the lists of the bundle, by id in this database.

    The bundle has positions instead of ids, which have no meaning in another installation.
    """

    configs: dict[int, int]
    cells: dict[int, int]

    @classmethod
    def build(cls, selection: BundleSelection) -> "_BundlePositions":
        configs = {config.pk: index for index, config in enumerate(selection.configs)}
        return cls(configs, {cell.pk: index for index, cell in enumerate(selection.cells)})

    def trial_to_json(self, trial: Trial, steps: tuple[Step, ...]) -> JsonObject:
        return {
            "config": self.configs[trial.config_id],
            "cell": self.cells[trial.cell_id],
            "trial": row_to_json(trial),
            "judgements": [row_to_json(judgement) for judgement in trial.judgements.all()],
            "steps": [{"step": row_to_json(step), "body": row_to_json(step.body)} for step in steps],
        }


def _run_to_json(selection: BundleSelection, positions: _BundlePositions) -> JsonObject:
    """Return the content of `evidence/run.json`. A run that has not ended is written as cancelled."""
    run = row_to_json(selection.run)
    if selection.run.state not in Run.ENDED:
        run |= {"state": Run.State.CANCELLED, "stopped_reason": "The run had not ended when its bundle was written."}
    return {
        "run": run,
        "configs": _configs_to_json(selection.configs),
        "private": sorted(selection.private),
        "cells": [{"config": positions.configs[cell.config_id], "cell": row_to_json(cell)} for cell in selection.cells],
    }


def _configs_to_json(configs: Sequence[RunConfig]) -> list[JsonObject]:
    """Return the configurations, each with the price from which its costs are computed, if it is known.

    The price is written because it may follow from the provider, and an imported run has no provider.
    """
    prices = find_prices(RunConfig.objects.filter(pk__in=[config.pk for config in configs]))
    for config in configs:
        if config.pk in prices:
            config.price = prices[config.pk].to_json()
    return [row_to_json(config) for config in configs]


def _mask_steps(trial: Trial, masker: Masker) -> tuple[Step, ...]:
    """Mask known secrets in the loaded bytes of a trial and its steps, without saving them; return the steps."""
    steps = tuple(trial.steps.all())
    for step in steps:
        step.body = _mask_row(step.body if hasattr(step, "body") else StepBody(step=step), masker)
    _mask_row(trial, masker)
    return steps


def _mask_row(row: _Row, masker: Masker) -> _Row:
    """Mask the bytes of a row in place and return the row.

    Call it before the bytes are encoded in base64, where secrets are not found.
    """
    for column in row._meta.concrete_fields:
        if isinstance(column, BinaryField) and (value := getattr(row, column.name)):
            setattr(row, column.name, masker.mask_body(bytes(value)))
    return row


def _build_source(run: Run) -> JsonObject:
    """Return the id and title of the run in this installation, its engine and, if it was imported, its origin."""
    origin = {name: run.origin.get(name) for name in ("kind", "sha256", "made_at", "source")}
    return {
        "run": run.pk,
        "title": str(run),
        "simulated": run.simulated,
        "written_by_engine": compute_engine_version(),
        "imported_from": origin if run.imported else None,
    }


def _render_compact_json(value: object) -> bytes:
    """Return a value as compact ASCII JSON, with the keys in their order.

    Raises:
        ValueError: the value contains NaN or an infinity.
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
