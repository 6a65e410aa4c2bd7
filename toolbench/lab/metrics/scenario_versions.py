"""Versions of scenarios. Versions of one scenario are different tasks, so their counts are never added up.

Pages count the newest version that was tried.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.db.models import Q

CellRows = list[dict[str, Any]]
FINISHED_COUNTS = ("passed", "failed", "infra")
ModelKey = tuple[str, str]  # provider and model


@dataclass(frozen=True, slots=True)
class OmittedVersion:
    """Cells of a version that a page leaves out because it counts another version of the same wording."""

    scenario: str
    version: int
    kind: str

    @property
    def token(self) -> str:
        """Token of the scenario's version and its kind of instance in a query string."""
        return f"{self.scenario}@{self.version}:{self.kind}"


@dataclass(frozen=True, slots=True)
class ModelVersions:
    """The versions that one model tried.

    Attributes:
        left_out: versions of which the model itself tried a newer one.
        behind: versions that are counted though another model tried a newer one.
    """

    left_out: tuple[OmittedVersion, ...]
    behind: tuple[OmittedVersion, ...]


def has_finished_trials(line: Mapping[str, Any]) -> bool:
    """Return whether a trial of these cells passed, failed or had an infrastructure error.

    Only versions with such trials compete.
    """
    return any(line[f"sum_{name}"] for name in FINISHED_COUNTS)


def split_newest_versions(lines: CellRows) -> tuple[CellRows, CellRows]:
    """Return the rows in the newest version of their scenario that has finished trials, and the other rows.

    A version whose trials are only queued or cancelled hides no version that was tried. Where none was tried, the
    newest is kept. The rows have `scenario`, `scenario_version` and the sums of `FINISHED_COUNTS`, of one kind of
    instance.
    """
    newest: dict[str, tuple[bool, int]] = {}
    for line in lines:
        rank = (has_finished_trials(line), line["scenario_version"])
        newest[line["scenario"]] = max(rank, newest.get(line["scenario"], rank))
    kept = [line for line in lines if line["scenario_version"] == newest[line["scenario"]][1]]
    return kept, [line for line in lines if line["scenario_version"] != newest[line["scenario"]][1]]


def find_omitted_versions(
    lines: Iterable[dict[str, Any]],
) -> tuple[tuple[OmittedVersion, ...], Mapping[ModelKey, ModelVersions]]:
    """Return the versions that are not the newest tried one of their scenario and kind of instance.

    Args:
        lines: rows with `provider_name`, `model_name`, `scenario`, `instance_kind`, `scenario_version` and the sums of
            `FINISHED_COUNTS`.

    Returns:
        The versions over all models, and the same for each provider and model alone.
    """
    lines = list(lines)
    overall = _split_versions(lines)[1]
    by_model: dict[ModelKey, CellRows] = {}
    for line in lines:
        by_model.setdefault((line["provider_name"], line["model_name"]), []).append(line)
    found: dict[ModelKey, ModelVersions] = {}
    for key, versions in by_model.items():
        counted, uncounted = _split_versions(versions)
        found[key] = ModelVersions(uncounted, tuple(version for version in counted if version in overall))
    return overall, found


def _split_versions(lines: CellRows) -> tuple[tuple[OmittedVersion, ...], tuple[OmittedVersion, ...]]:
    """Return the counted versions with finished trials, and the others, for each kind of instance."""
    counted, uncounted = set[OmittedVersion](), set[OmittedVersion]()
    for kind in {line["instance_kind"] for line in lines}:
        newest, earlier = split_newest_versions([line for line in lines if line["instance_kind"] == kind])
        counted |= {_build_version(line) for line in newest if has_finished_trials(line)}
        uncounted |= {_build_version(line) for line in earlier}
    in_order = attrgetter("scenario", "version", "kind")
    return tuple(sorted(counted, key=in_order)), tuple(sorted(uncounted, key=in_order))


def _build_version(line: Mapping[str, Any]) -> OmittedVersion:
    return OmittedVersion(line["scenario"], line["scenario_version"], line["instance_kind"])


def build_omission_notice(versions: Sequence[str]) -> str:
    """Return the sentence of a page that leaves versions out; "" for none.

    Args:
        versions: tokens, repeats allowed.
    """
    if not versions:
        return ""
    tokens = sorted({(slug, version) for slug, version, _ in _parse_tokens(",".join(versions))})
    named = ", ".join(f"{slug} version {version}" for slug, version in tokens)
    return (
        f"Left out, since the newest version with finished trials is counted alone: {named}. Versions are different "
        "tasks and are never added up; choose only the runs of that version to see it."
    )


def is_version_tokens(text: str) -> bool:
    """Return whether the text is a comma list of tokens, `slug@version` or `slug@version:kind`."""
    return all(slug and version.isdecimal() and len(version) < 6 for slug, version, _ in _split_tokens(text))


def build_exclusion(tokens: str) -> Q:
    """Return the condition that leaves out the versions of these tokens, on rows with a scenario."""
    found = Q()
    for slug, version, kind in _parse_tokens(tokens):
        of_kind = {"instance_kind": kind} if kind else {}
        found &= ~Q(scenario=slug, scenario_version=version, **of_kind)
    return found


def _parse_tokens(tokens: str) -> set[tuple[str, int, str]]:
    return {(slug, int(version), kind) for slug, version, kind in _split_tokens(tokens)}


def _split_tokens(tokens: str) -> Iterator[tuple[str, str, str]]:
    for token in filter(None, tokens.split(",")):
        slug, _, rest = token.rpartition("@")
        version, _, kind = rest.partition(":")
        yield slug, version, kind


def render_tokens(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the tokens of lines with `scenario` and `scenario_version`."""
    return ",".join(sorted({f"{line['scenario']}@{line['scenario_version']}" for line in lines}))
