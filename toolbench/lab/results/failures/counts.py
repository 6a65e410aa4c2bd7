"""Counts of failed trials for the failures page, and of all trials by model."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.metrics.cause_pools import FINISHED_OUTCOMES, CauseLine
from toolbench.lab.metrics.scenario_versions import (
    FINISHED_COUNTS,
    ModelKey,
    ModelVersions,
    OmittedVersion,
    find_omitted_versions,
)
from toolbench.lab.models import Trial

FAILED_OUTCOMES = (Trial.Outcome.FAIL, Trial.Outcome.INFRA)
_SUM_NAME_BY_OUTCOME: Mapping[str, str] = dict(
    zip(FINISHED_OUTCOMES, (f"sum_{name}" for name in FINISHED_COUNTS), strict=True)
)


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """Counts of failed trials, whose causes are those of one version of the table of causes.

    Trials with an infrastructure error count as failed.

    Attributes:
        lines: counts of the trials with a cause that `version` gave, or with a failure class if failure classes are
            counted; in all versions of scenarios.
        tried: number of trials that passed, failed or had an infrastructure error, by model, in the versions of
            scenarios that the model's column counts. If `uncounted_failures` is not 0, only those that `version` has
            classified.
        version: version of the table of causes: the current one if it has classified failed trials, or if no version
            has; else the newest version that has.
        uncounted_failures: number of failed trials that `version` has not classified; 0 if failure classes are counted.
        reclassifiable: number of failed trials, without imported ones, that the current version has not classified; 0
            if failure classes are counted.
        omitted: versions of scenarios that the column of all models omits.
        models: by model, the versions of scenarios that its column omits, and those that it counts although another
            model has a newer one.
    """

    lines: tuple[CauseLine, ...]
    tried: Mapping[ModelKey, int]
    version: int
    uncounted_failures: int
    reclassifiable: int
    omitted: frozenset[OmittedVersion]
    models: Mapping[ModelKey, ModelVersions]

    def render_omitted_tokens(self, model: ModelKey | None) -> str:
        """Return the tokens of the versions that a model's column omits, sorted and separated by commas.

        Args:
            model: the model; None for the versions that the column of all models omits.
        """
        versions = self.omitted if model is None else self.models[model].left_out
        return ",".join(sorted(version.token for version in versions))


def count_failures(lines: Iterable[CauseLine], *, counts_failure_classes: bool) -> FailureCounts:
    """Count the failed trials, and all finished trials by model.

    Args:
        lines: counts of all trials in scope.
        counts_failure_classes: whether failure classes of verdicts are counted instead of causes.
    """
    lines = tuple(lines)
    failed_lines = [line for line in lines if line.outcome in FAILED_OUTCOMES]
    current_version = read_taxonomy_version()
    versions = {line.taxonomy for line in failed_lines if line.taxonomy}
    version = current_version if current_version in versions or not versions else max(versions)
    cause_lines = [] if counts_failure_classes else failed_lines  # only causes depend on the version of the table
    uncounted_failures = sum(line.count for line in cause_lines if line.taxonomy != version)
    omitted, models = find_omitted_versions(_build_version_rows(lines))
    counted = [line for line in lines if is_counted(line, models[line.provider, line.model].left_out)]
    tried = Counter[ModelKey]()
    for line in counted:
        if line.outcome in FINISHED_OUTCOMES and (line.taxonomy == version or not uncounted_failures):
            tried[line.provider, line.model] += line.count
    return FailureCounts(
        lines=tuple(line for line in lines if _has_code(line, version, counts_failure_classes=counts_failure_classes)),
        tried=tried,
        version=version,
        uncounted_failures=uncounted_failures,
        reclassifiable=sum(
            line.count for line in cause_lines if line.taxonomy != current_version and not line.imported
        ),
        omitted=frozenset(omitted),
        models=models,
    )


def is_counted(line: CauseLine, omitted: Iterable[OmittedVersion]) -> bool:
    """Return whether the scenario version of a line is not in `omitted`."""
    return OmittedVersion(line.scenario, line.version, line.kind) not in omitted


def _has_code(line: CauseLine, version: int, *, counts_failure_classes: bool) -> bool:
    return bool(line.failure_class) if counts_failure_classes else bool(line.cause) and line.taxonomy == version


def _build_version_rows(lines: Iterable[CauseLine]) -> list[dict[str, Any]]:
    """Return the rows for `find_omitted_versions`, with the numbers of finished trials."""
    sums: dict[tuple[object, ...], Counter[str]] = {}
    for line in lines:
        key = (line.provider, line.model, line.scenario, line.kind, line.version)
        sums.setdefault(key, Counter())[_SUM_NAME_BY_OUTCOME.get(line.outcome, "")] += line.count
    names = ("provider_name", "model_name", "scenario", "instance_kind", "scenario_version")
    return [
        {**dict(zip(names, key, strict=True)), **{name: counts[name] for name in _SUM_NAME_BY_OUTCOME.values()}}
        for key, counts in sums.items()
    ]
