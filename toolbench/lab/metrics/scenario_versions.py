"""Choice of the scenario versions that pages count, and the notice about versions that they leave out.

Versions of a scenario are different tasks, so their counts are never added up: pages count the newest version with
finished trials.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.db.models import Q

CellRows = list[dict[str, Any]]  # each row has sums over cells, by column
FINISHED_COUNTS = ("passed", "failed", "infra")  # counters of finished trials
ModelKey = tuple[str, str]  # provider and model


@dataclass(frozen=True, slots=True)
class OmittedVersion:
    """A scenario version that a page leaves out because it counts another version.

    Attributes:
        scenario: slug of the scenario.
        kind: the kind of instance, `drawn` or `parity` (the published wording).
    """

    scenario: str
    version: int
    kind: str

    @property
    def token(self) -> str:
        """The token of the version and kind of instance in query strings: `slug@version:kind`."""
        return f"{self.scenario}@{self.version}:{self.kind}"


@dataclass(frozen=True, slots=True)
class ModelVersions:
    """Scenario versions of one model that a page treats differently from those of other models.

    Attributes:
        left_out: versions that are not counted for the model, since another one is the newest as defined by
            `split_newest_versions`.
        behind: versions that are counted for the model, although another model has finished trials of a newer version.
    """

    left_out: tuple[OmittedVersion, ...]
    behind: tuple[OmittedVersion, ...]


def has_finished_trials(row: Mapping[str, Any]) -> bool:
    """Return whether any trial in these sums passed, failed or had an infrastructure error."""
    return any(row[f"sum_{name}"] for name in FINISHED_COUNTS)


def split_newest_versions(rows: CellRows) -> tuple[CellRows, CellRows]:
    """Split rows into those of the newest version of their scenario and the others.

    A version without finished trials counts as the newest only if no version of the scenario has finished trials.

    Args:
        rows: rows of one kind of instance, with `scenario`, `scenario_version` and the sums of FINISHED_COUNTS.
    """
    newest: dict[str, tuple[bool, int]] = {}
    for row in rows:
        rank = (has_finished_trials(row), row["scenario_version"])
        newest[row["scenario"]] = max(rank, newest.get(row["scenario"], rank))
    newest_rows = [row for row in rows if row["scenario_version"] == newest[row["scenario"]][1]]
    return newest_rows, [row for row in rows if row["scenario_version"] != newest[row["scenario"]][1]]


def find_omitted_versions(
    rows: Iterable[dict[str, Any]],
) -> tuple[tuple[OmittedVersion, ...], Mapping[ModelKey, ModelVersions]]:
    """Find the versions that are not the newest one of their scenario and kind of instance.

    Args:
        rows: rows with `provider_name`, `model_name`, `scenario`, `instance_kind`, `scenario_version` and the sums of
            FINISHED_COUNTS.

    Returns:
        The versions that are not the newest among all models; and the versions of each model, by its key.
    """
    rows = list(rows)
    overall = _split_versions(rows)[1]
    rows_by_model: dict[ModelKey, CellRows] = {}
    for row in rows:
        rows_by_model.setdefault((row["provider_name"], row["model_name"]), []).append(row)
    versions_by_model: dict[ModelKey, ModelVersions] = {}
    for key, model_rows in rows_by_model.items():
        counted, uncounted = _split_versions(model_rows)
        versions_by_model[key] = ModelVersions(uncounted, tuple(version for version in counted if version in overall))
    return overall, versions_by_model


def _split_versions(rows: CellRows) -> tuple[tuple[OmittedVersion, ...], tuple[OmittedVersion, ...]]:
    """Return the newest versions that have finished trials, and the versions that are not the newest, both in order.

    `split_newest_versions` defines which version is the newest.
    """
    counted, uncounted = set[OmittedVersion](), set[OmittedVersion]()
    for kind in {row["instance_kind"] for row in rows}:
        newest, others = split_newest_versions([row for row in rows if row["instance_kind"] == kind])
        counted |= {_build_version(row) for row in newest if has_finished_trials(row)}
        uncounted |= {_build_version(row) for row in others}
    sort_key = attrgetter("scenario", "version", "kind")
    return tuple(sorted(counted, key=sort_key)), tuple(sorted(uncounted, key=sort_key))


def _build_version(row: Mapping[str, Any]) -> OmittedVersion:
    return OmittedVersion(row["scenario"], row["scenario_version"], row["instance_kind"])


def build_omission_notice(versions: Sequence[str]) -> str:
    """Return the notice about versions that a page leaves out; "" without versions.

    Args:
        versions: tokens or comma lists of tokens; a repeated version is named once.
    """
    if not versions:
        return ""
    tokens = sorted({(slug, version) for slug, version, _ in _parse_tokens(",".join(versions))})
    names = ", ".join(f"{slug} version {version}" for slug, version in tokens)
    return (
        f"Left out, since only the newest version with finished trials is counted: {names}. Versions are different "
        "tasks, so they are never added up. To see a version, choose only its runs."
    )


def is_version_tokens(text: str) -> bool:
    """Return whether the text is a comma list of tokens: `slug@version` or `slug@version:kind`.

    A version has at most 5 digits. The list may be empty.
    """
    return all(slug and version.isdecimal() and len(version) < 6 for slug, version, _ in _split_tokens(text))


def build_exclusion(tokens: str) -> Q:
    """Return the condition on cells or trials that leaves out the versions in a comma list of tokens."""
    condition = Q()
    for slug, version, kind in _parse_tokens(tokens):
        kind_condition = {"instance_kind": kind} if kind else {}
        condition &= ~Q(scenario=slug, scenario_version=version, **kind_condition)
    return condition


def _parse_tokens(tokens: str) -> set[tuple[str, int, str]]:
    return {(slug, int(version), kind) for slug, version, kind in _split_tokens(tokens)}


def _split_tokens(tokens: str) -> Iterator[tuple[str, str, str]]:
    for token in filter(None, tokens.split(",")):
        slug, _, rest = token.rpartition("@")
        version, _, kind = rest.partition(":")
        yield slug, version, kind


def render_tokens(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the sorted tokens `slug@version` of rows with `scenario` and `scenario_version` as a comma list."""
    return ",".join(sorted({f"{row['scenario']}@{row['scenario_version']}" for row in rows}))
