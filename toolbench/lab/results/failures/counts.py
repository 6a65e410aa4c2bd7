"""The failed trials that the failures page counts, and the trials of which they are a share."""

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
_COUNT_NAMES: Mapping[str, str] = dict(zip(FINISHED_OUTCOMES, (f"sum_{name}" for name in FINISHED_COUNTS), strict=True))


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """What is counted: failed trials by the shown version of the table of causes, and versions of scenarios.

    Attributes:
        failed: the lines with a code, in all versions of scenarios.
        tried: trials that passed, failed or had an infrastructure error, by model, as its column counts them.
        version: of the table of causes: the current one if it has results, else the newest.
        other_versions: failed trials that this version has not classified.
        own_failures: failed trials that reclassifying would reach.
        omitted: versions of scenarios that are not the newest of all models.
        models: versions of scenarios of each model.
    """

    failed: tuple[CauseLine, ...]
    tried: Mapping[ModelKey, int]
    version: int
    other_versions: int
    own_failures: int
    omitted: frozenset[OmittedVersion]
    models: Mapping[ModelKey, ModelVersions]

    def list_omitted_tokens(self, model: ModelKey | None) -> str:
        """Return the tokens of versions that a model's column leaves out, or the total for None."""
        versions = self.omitted if model is None else self.models[model].left_out
        return ",".join(sorted(version.token for version in versions))


def count_failures(lines: Iterable[CauseLine], *, first: bool) -> FailureCounts:
    """Return what the page counts of these lines.

    Args:
        lines: all trials in scope.
        first: whether the first problem by the verdict counts; the table of causes then plays no part.
    """
    lines = tuple(lines)
    bad = [line for line in lines if line.outcome in FAILED_OUTCOMES]
    now = read_taxonomy_version()
    seen = {line.taxonomy for line in bad if line.taxonomy}
    version = now if now in seen or not seen else max(seen)
    others = 0 if first else sum(line.count for line in bad if line.taxonomy != version)
    omitted, models = find_omitted_versions(_build_version_rows(lines))
    kept = [line for line in lines if is_counted(line, models[line.provider, line.model].left_out)]
    tried = Counter[ModelKey]()
    for line in kept:
        if line.outcome in FINISHED_OUTCOMES and (line.taxonomy == version or not others):
            tried[line.provider, line.model] += line.count
    return FailureCounts(
        failed=tuple(line for line in lines if _has_code(line, version, first=first)),
        tried=tried,
        version=version,
        other_versions=others,
        own_failures=sum(line.count for line in bad if line.taxonomy != now and not line.imported and not first),
        omitted=frozenset(omitted),
        models=models,
    )


def is_counted(line: CauseLine, omitted: Iterable[OmittedVersion]) -> bool:
    """Return whether a line is in none of these versions of scenarios."""
    return OmittedVersion(line.scenario, line.version, line.kind) not in omitted


def _has_code(line: CauseLine, version: int, *, first: bool) -> bool:
    return bool(line.failure_class) if first else bool(line.cause) and line.taxonomy == version


def _build_version_rows(lines: Iterable[CauseLine]) -> list[dict[str, Any]]:
    """Return the sums by model, scenario, kind of instance and version."""
    sums: dict[tuple[object, ...], Counter[str]] = {}
    for line in lines:
        key = (line.provider, line.model, line.scenario, line.kind, line.version)
        sums.setdefault(key, Counter())[_COUNT_NAMES.get(line.outcome, "")] += line.count
    names = ("provider_name", "model_name", "scenario", "instance_kind", "scenario_version")
    return [
        {**dict(zip(names, key, strict=True)), **{name: found[name] for name in _COUNT_NAMES.values()}}
        for key, found in sums.items()
    ]
