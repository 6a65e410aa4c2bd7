"""First measurement: does a failed trial of a model with one fault get a cause of this fault?"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.causes.simulated_trials import PlayedTrial
from benchmarks.simulated_trials import Cell
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.providers.simulated.personas import Persona, load_personas
from toolbench.providers.simulated.seeded_random import build_random

CAUSES_FILE = Path(__file__).parents[1] / "data" / "drift_causes.json"
WIRE_FORMATS = ("chat", "anthropic", "responses")
MIN_SHARE = 0.98
MAX_LISTED_MISSES = 20
NO_FAILURE = "no failure"


@dataclass(frozen=True)
class CellSettings:
    """Settings of a cell besides its persona and scenario."""

    strategy: str = "raw"
    method: str = "native"
    stream: bool = False
    wire: str = "chat"


SETTINGS = (
    CellSettings(),
    CellSettings("production"),
    CellSettings(stream=True),
    CellSettings(method="text_json"),
    CellSettings(method="constrained"),
    CellSettings(method="template"),
    CellSettings(wire="anthropic"),
    CellSettings(wire="responses"),
)


@dataclass(frozen=True)
class PersonaCauses:
    """Failed trials of one persona.

    Attributes:
        expected: the causes that trials with its fault have to get.
        causes: number of trials by the cause that they got.
        right: number of trials that got an expected cause.
    """

    persona: str
    expected: tuple[str, ...]
    causes: Counter[str]
    right: int

    @property
    def failed(self) -> int:
        return self.causes.total()


def iter_cells(
    personas: Iterable[Persona], slugs: Sequence[str], settings: Sequence[CellSettings] = SETTINGS
) -> Iterator[Cell]:
    """Yield every cell in which a fault has an effect."""
    for persona in personas:
        for setting in settings:
            if not persona.drift or not _can_be_rendered(persona, setting):
                continue
            for slug in slugs:
                if setting.method in scenarios.lookup_scenario(slug).methods:
                    yield Cell((persona.slug,), slug, setting.strategy, setting.method, setting.stream, setting.wire)


def list_expected_causes(cell: Cell, seed: int) -> tuple[str, ...]:
    """Return the causes that a failed trial of one persona may get; empty if its fault fails no trial."""
    persona = load_personas()[cell.personas[0]]
    row = _read_rows()[persona.drift]
    if "one_of" in row:
        row = _read_rows()[build_random(seed, persona.slug, "move").choice(row["one_of"])]
    found = next((item for item in row.get("but", ()) if _matches_cell(item, cell)), row)
    return tuple(found["causes"])


def count_causes(played: Iterable[PlayedTrial]) -> tuple[PersonaCauses, ...]:
    """Return one row for each persona that failed a trial, in the order of the file."""
    causes: dict[str, Counter[str]] = {}
    expected: dict[str, dict[str, None]] = {}
    right: Counter[str] = Counter()
    for trial in played:
        slug = trial.cell.personas[0]
        if trial.failed:
            expected_causes = list_expected_causes(trial.cell, trial.seed)
            causes.setdefault(slug, Counter())[trial.cause] += 1
            expected.setdefault(slug, {}).update(dict.fromkeys(expected_causes))
            right[slug] += trial.cause in expected_causes
    return tuple(
        PersonaCauses(slug, tuple(expected[slug]), causes[slug], right[slug])
        for slug in load_personas()
        if slug in causes
    )


def list_misses(played: Iterable[PlayedTrial]) -> list[PlayedTrial]:
    """Return the failed trials that got none of their expected causes."""
    return [item for item in played if item.failed and item.cause not in list_expected_causes(item.cell, item.seed)]


def iter_report_lines(played: Sequence[PlayedTrial]) -> Iterator[str]:
    """Yield a Markdown table of each persona with the causes of its failed trials, and a summary."""
    rows = count_causes(played)
    yield "| persona | expected causes | failed trials | with an expected cause | causes found |"
    yield "|---|---|---|---|---|"
    for row in rows:
        found = ", ".join(f"{cause} {count}" for cause, count in row.causes.most_common())
        yield f"| {row.persona} | {', '.join(row.expected) or NO_FAILURE} | {row.failed} | {row.right} | {found} |"
    failed, right = sum(row.failed for row in rows), sum(row.right for row in rows)
    yield ""
    share = compute_share(played)
    yield f"{len(played):,} trials, {failed:,} failed, {right:,} ({share:.2%}) with an expected cause."
    for trial in list_misses(played)[:MAX_LISTED_MISSES]:
        yield f"missed: {trial.cell}, seed {trial.seed}: {trial.cause}"


def compute_share(played: Sequence[PlayedTrial]) -> float:
    """Return the share of failed trials with an expected cause; 1 if none failed."""
    rows = count_causes(played)
    failed = sum(row.failed for row in rows)
    return sum(row.right for row in rows) / failed if failed else 1.0


def _can_be_rendered(persona: Persona, setting: CellSettings) -> bool:
    """Return whether a fault can occur with these settings.

    A fault of some wire formats only is tried with native calls in these formats.
    """
    if setting.wire not in persona.wires:
        return False
    return setting.method == "native" or persona.wires == WIRE_FORMATS


def _matches_cell(row: JsonObject, cell: Cell) -> bool:
    fields = {"scenarios": cell.scenario, "methods": cell.method, "strategies": cell.strategy}
    return all(value in row.get(name, (value,)) for name, value in fields.items())


@cache
def _read_rows() -> dict[str, JsonObject]:
    rows = json.loads(CAUSES_FILE.read_text(encoding="utf-8"))["rows"]
    return {row["drift"]: row for row in rows}
