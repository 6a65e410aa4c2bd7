"""Packs: tasks as data. A row says in which words something is asked, which calls it wants, and what is drawn."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from toolbench.engine.events import Ended
from toolbench.engine.messages import JsonObject, Message
from toolbench.engine.policy.policy import METHODS
from toolbench.evals.causes.table import cause_of_envelope
from toolbench.evals.data_files import frozen_row, read_table
from toolbench.evals.expected_calls import Due
from toolbench.evals.scenarios import expected, padding, toolboxes
from toolbench.evals.scenarios.seeded_draws import Draw
from toolbench.evals.scenarios.wording import fill
from toolbench.evals.tool_faults import FaultyAnswers
from toolbench.evals.types import DRAWN, PARITY, Instance, Verdict, Workspace

PACKS = ("recovery", "restraint", "tool_count", "schemas", "long_context", "parallel", "languages")
ALONE = re.compile(r"\$(\w+)", re.ASCII)
ONE_TURN: JsonObject = {"max_turns": 1}


@dataclass(eq=False, slots=True)
class PackScenario:
    """One row of data/packs/. `asks` hold `text` (wordings), `calls` and `reply`; `words` what is drawn by name: a list
    to choose from, {from, to} for a number, several names with commas for as many different ones. `tools` is the
    pool, of which `offered` are shown. The parity instance has the first wording."""

    slug: str
    title: str
    intent: str
    group: str
    system: tuple[str, ...]
    asks: tuple[JsonObject, ...]
    tools: toolboxes.Pool
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
    layer: JsonObject = field(default_factory=lambda: dict(ONE_TURN))
    straight_requests: int = 1
    methods: tuple[str, ...] = METHODS
    version: int = 1
    control: bool = False
    public: bool = True

    def draw(self, seed: int, *, kind: str = DRAWN) -> Instance:
        draw = Draw.of(self.slug, seed, plain=kind == PARITY)
        ask = self.asks[draw.source.randrange(len(self.asks))]
        values = draw_words(self.words, draw.source)
        calls = filled(ask.get("calls", []), values)
        text = filled(draw.choice(ask["text"]), values)
        tools = toolboxes.choose(self.tools, [call["tool"] for call in calls], self.offered, draw)
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=draw.choice(self.system),
            user_text=padding.padded(text, {**self.padding_names, **self.padding}, values, draw.source),
            tools=tuple(replace(tool, timeout_seconds=self.timeout_seconds) for tool in tools),
            history=tuple(_message(row) for row in filled(list(self.history), values)),
            layer=dict(self.layer),
            values={
                **values,
                "calls": calls,
                "reply": [str(text) for text in filled(ask.get("reply", []), values)],
                "answers": filled(self.answers, values),
            },
        )

    def due(self, instance: Instance) -> Due:
        return expected.due(self._expected(instance), self._provoked())

    def open(self, instance: Instance) -> Workspace:
        known = {tool.name: {"done": True} for tool in instance.tools}
        return FaultyAnswers({**known, **instance.values["answers"]}, self.faults)

    def judge(self, instance: Instance, ended: Ended, workspace: Workspace) -> Verdict:
        return expected.judge(instance, ended, self._expected(instance))

    def _expected(self, instance: Instance) -> expected.Expected:
        return expected.Expected(
            calls=tuple(instance.values["calls"]),
            together=self.together,
            reply=tuple(instance.values["reply"]),
            question=self.question,
            faults=self.fault_codes,
            repeats=bool(self.faults),
            one_turn=self.layer.get("max_turns") == 1,
        )

    def _provoked(self) -> tuple[str, ...]:
        """Return the cause of each fault of a tool, as often as the tool has it."""
        causes = (cause_of_envelope(code) for code in self.fault_codes)
        times = (fault.get("times", 1) for fault in self.faults)
        return tuple(cause for cause, often in zip(causes, times, strict=False) for _ in range(often))


def load() -> tuple[PackScenario, ...]:
    """Every pack's scenarios, packs in their order."""
    return tuple(_scenario(row, read_table(f"packs/{name}")) for name in PACKS for row in _rows(name))


def draw_words(words: Mapping[str, Any], source: Random) -> JsonObject:
    """One value for every name; a number stays a number."""
    values: JsonObject = {}
    for names, choices in words.items():
        if isinstance(choices, dict):
            values[names] = source.randint(choices["from"], choices["to"])
        else:
            several = names.split(",")
            values |= zip(several, source.sample(choices, len(several)), strict=True)
    return values


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """The JSON value with every `$name` replaced; a text that is nothing but a name becomes the value itself, and a
    tool's name is written in snake_case."""
    if isinstance(value, str):
        alone = ALONE.fullmatch(value)
        return values[alone[1]] if alone else fill(value, {name: str(one) for name, one in values.items()})
    if isinstance(value, list):
        return [filled(one, values) for one in value]
    if isinstance(value, Mapping):
        done = {key: filled(one, values) for key, one in value.items()}
        return done | {"tool": done["tool"].replace(" ", "_")} if "tool" in done else done
    return value


def _rows(name: str) -> list[JsonObject]:
    rows: list[JsonObject] = read_table(f"packs/{name}")["scenarios"]
    return rows


def _scenario(row: JsonObject, pack: JsonObject) -> PackScenario:
    """What a pack says for all its scenarios, and what the row says otherwise."""
    own = {key: value for key, value in pack.items() if key not in ("scenarios", "tools")}
    return PackScenario(**frozen_row({**own, **row}), tools=toolboxes.read_pool(pack["tools"]))


def _message(row: JsonObject) -> Message:
    return dict(row)
