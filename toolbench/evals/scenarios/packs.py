"""Task packs: tasks as data, with the wordings, the expected calls and the values to draw."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from toolbench.engine.events import LoopResult
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.types import JsonObject, Message
from toolbench.evals.causes.table import classify_envelope
from toolbench.evals.data_files import freeze_row, read_table
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.scenarios import expected, padding, toolboxes
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.wording import fill_placeholders
from toolbench.evals.tool_faults import FaultyTools
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Verdict, Workspace

PACKS = ("recovery", "restraint", "tool_count", "schemas", "long_context", "parallel", "languages")
NAME_ONLY = re.compile(r"\$(\w+)", re.ASCII)
ONE_TURN_LAYER: JsonObject = {"max_turns": 1}


@dataclass(eq=False, slots=True)
class PackScenario:
    """One row of data/packs/; the published instance has the first wording.

    Attributes:
        asks: Objects with `text` (wordings), `calls` and `reply`.
        words: The values to draw, by name: a list to choose from, or {from, to} for a number; several names with commas
            get as many different values.
        tools: The pool of tools.
        offered: The number of tools shown; 0 for all.
    """

    slug: str
    title: str
    intent: str
    group: str
    system: tuple[str, ...]
    asks: tuple[JsonObject, ...]
    tools: toolboxes.ToolPool
    offered: int = 0
    words: JsonObject = field(default_factory=dict)
    answers: JsonObject = field(default_factory=dict)
    faults: tuple[JsonObject, ...] = ()
    fault_codes: tuple[str, ...] = ()
    history: tuple[JsonObject, ...] = ()
    padding: JsonObject = field(default_factory=dict)
    padding_names: JsonObject = field(default_factory=dict)
    timeout_seconds: float | None = None  # of each tool
    together: bool = False
    question: bool = False
    layer: JsonObject = field(default_factory=lambda: dict(ONE_TURN_LAYER))
    straight_requests: int = 1
    methods: tuple[str, ...] = METHODS
    version: int = 1
    control: bool = False
    public: bool = True

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed."""
        draw = SeededDraws.from_seed(self.slug, seed, plain=kind == PUBLISHED_WORDING)
        ask = self.asks[draw.source.randrange(len(self.asks))]
        values = draw_words(self.words, draw.source)
        calls = fill_values(ask.get("calls", []), values)
        text = fill_values(draw.choice(ask["text"]), values)
        tools = toolboxes.choose_tools(self.tools, [call["tool"] for call in calls], self.offered, draw)
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=draw.choice(self.system),
            user_text=padding.pad_text(text, {**self.padding_names, **self.padding}, values, draw.source),
            tools=tuple(replace(tool, timeout_seconds=self.timeout_seconds) for tool in tools),
            history=tuple(_build_message(row) for row in fill_values(list(self.history), values)),
            layer=dict(self.layer),
            values={
                **values,
                "calls": calls,
                "reply": [str(text) for text in fill_values(ask.get("reply", []), values)],
                "answers": fill_values(self.answers, values),
            },
        )

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the expected calls, with the causes that the faults provoke."""
        return expected.build_expected_calls(self._build_expectation(instance), self._list_provoked_causes())

    def open(self, instance: Instance) -> Workspace:
        """Return the tools with their answers and faults."""
        known = {tool.name: {"done": True} for tool in instance.tools}
        return FaultyTools({**known, **instance.values["answers"]}, self.faults)

    def judge(self, instance: Instance, ended: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict by calls and reply."""
        return expected.judge(instance, ended, self._build_expectation(instance))

    def _build_expectation(self, instance: Instance) -> expected.TaskExpectation:
        return expected.TaskExpectation(
            calls=tuple(instance.values["calls"]),
            together=self.together,
            reply=tuple(instance.values["reply"]),
            question=self.question,
            faults=self.fault_codes,
            repeats=bool(self.faults),
            one_turn=self.layer.get("max_turns") == 1,
        )

    def _list_provoked_causes(self) -> tuple[str, ...]:
        """Return the cause of each fault of a tool, as often as the tool has it."""
        causes = (classify_envelope(code) for code in self.fault_codes)
        times = (fault.get("times", 1) for fault in self.faults)
        return tuple(cause for cause, often in zip(causes, times, strict=False) for _ in range(often))


def load_scenarios() -> tuple[PackScenario, ...]:
    """Return the scenarios of every pack, in the order of the packs."""
    return tuple(_build_scenario(row, read_table(f"packs/{name}")) for name in PACKS for row in _read_rows(name))


def draw_words(words: Mapping[str, Any], source: Random) -> JsonObject:
    """Return one drawn value for every name; a number stays a number."""
    values: JsonObject = {}
    for names, choices in words.items():
        if isinstance(choices, dict):
            values[names] = source.randint(choices["from"], choices["to"])
        else:
            several = names.split(",")
            values |= zip(several, source.sample(choices, len(several)), strict=True)
    return values


def fill_values(value: Any, values: Mapping[str, Any]) -> Any:
    """Return the JSON value with every `$name` replaced.

    A text that is only a name becomes the value itself, and a tool's name is written in snake_case.
    """
    if isinstance(value, str):
        alone = NAME_ONLY.fullmatch(value)
        return (
            values[alone[1]]
            if alone
            else fill_placeholders(value, {name: str(value) for name, value in values.items()})
        )
    if isinstance(value, list):
        return [fill_values(item, values) for item in value]
    if isinstance(value, Mapping):
        done = {key: fill_values(item, values) for key, item in value.items()}
        return done | {"tool": done["tool"].replace(" ", "_")} if "tool" in done else done
    return value


def _read_rows(name: str) -> list[JsonObject]:
    rows: list[JsonObject] = read_table(f"packs/{name}")["scenarios"]
    return rows


def _build_scenario(row: JsonObject, pack: JsonObject) -> PackScenario:
    """Return the scenario: the pack's fields, overridden by those of the row."""
    shared = {key: value for key, value in pack.items() if key not in ("scenarios", "tools")}
    return PackScenario(**freeze_row({**shared, **row}), tools=toolboxes.read_pool(pack["tools"]))


def _build_message(row: JsonObject) -> Message:
    return dict(row)
