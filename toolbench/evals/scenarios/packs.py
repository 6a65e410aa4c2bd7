"""Task packs: scenarios as data, with the wordings, the expected calls and the values to draw."""

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
from toolbench.evals.scenarios import expected, offered_tools, padding
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.single_call import ONE_TURN_LAYER
from toolbench.evals.scenarios.wording import fill_placeholders
from toolbench.evals.tool_faults import FaultyTools
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Verdict, Workspace

PACKS = ("recovery", "restraint", "tool_count", "schemas", "long_context", "parallel", "languages")
_PLACEHOLDER = re.compile(r"\$(\w+)", re.ASCII)


@dataclass(eq=False, slots=True)
class PackScenario:
    """A scenario of a file of data/packs/. The fields have the names of the keys in the file.

    Attributes:
        system: The wordings of the system text.
        asks: The questions, one of which is drawn: objects with `text` (the wordings) and, if needed, `calls` (the
            expected calls) and `reply` (texts that the reply must contain).
        tools: The pool of tools.
        offered: The number of tools that an instance offers; 0 for all.
        words: The values to draw, by name: a list to choose from, or {from, to} for a whole number. A key of several
            names, such as `item,item2`, gives each of them a different value of the list.
        answers: The fixed answers of the tools by name; other tools answer {"done": true}.
        faults: The faults of the tools (tool_faults.py).
        fault_codes: The error code that each fault gives to a failed call, in the order of `faults`; empty if the
            faults make no call fail.
        history: The messages before the question.
        padding: `text` and `lines` of the lines that make the user's message longer (padding.py).
        padding_names: `first` and `last`, the names in those lines.
        timeout_seconds: The time limit of each call of a tool; None for no limit.
        together: Whether the calls must be in one message.
        question: Whether the reply must ask a question.
    """

    slug: str
    title: str
    intent: str
    group: str
    system: tuple[str, ...]
    asks: tuple[JsonObject, ...]
    tools: offered_tools.ToolPool
    offered: int = 0
    words: JsonObject = field(default_factory=dict)
    answers: JsonObject = field(default_factory=dict)
    faults: tuple[JsonObject, ...] = ()
    fault_codes: tuple[str, ...] = ()
    history: tuple[JsonObject, ...] = ()
    padding: JsonObject = field(default_factory=dict)
    padding_names: JsonObject = field(default_factory=dict)
    timeout_seconds: float | None = None
    together: bool = False
    question: bool = False
    layer: JsonObject = field(default_factory=lambda: dict(ONE_TURN_LAYER))
    min_requests: int = 1
    methods: tuple[str, ...] = METHODS
    version: int = 1
    control: bool = False
    public: bool = True

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed.

        With PUBLISHED_WORDING the instance has the first wordings, and the tools that the task needs come first. With
        either kind the question, its values and the random ones of the other tools are drawn.
        """
        draw = SeededDraws.from_seed(self.slug, seed, plain=kind == PUBLISHED_WORDING)
        ask = self.asks[draw.source.randrange(len(self.asks))]
        values = draw_words(self.words, draw.source)
        calls = fill_values(ask.get("calls", []), values)
        text = fill_values(draw.choice(ask["text"]), values)
        tools = offered_tools.choose_tools(self.tools, [call["tool"] for call in calls], self.offered, draw)
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
        """Return a new workspace of the tools with their answers and faults."""
        default_answers = {tool.name: {"done": True} for tool in instance.tools}
        return FaultyTools({**default_answers, **instance.values["answers"]}, self.faults)

    def judge(self, instance: Instance, loop_result: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict by calls and reply."""
        return expected.judge(instance, loop_result, self._build_expectation(instance))

    def _build_expectation(self, instance: Instance) -> expected.TaskExpectation:
        return expected.TaskExpectation(
            calls=tuple(instance.values["calls"]),
            is_parallel=self.together,
            reply_texts=tuple(instance.values["reply"]),
            needs_question=self.question,
            fault_codes=self.fault_codes,
            permits_repeats=bool(self.faults),
            has_one_turn=self.layer.get("max_turns") == 1,
        )

    def _list_provoked_causes(self) -> tuple[str, ...]:
        """Return the causes of the faults with an error code, each as often as its `times` says (default 1)."""
        causes = (classify_envelope(code) for code in self.fault_codes)
        counts = (fault.get("times", 1) for fault in self.faults)
        return tuple(cause for cause, count in zip(causes, counts, strict=False) for _ in range(count))


def load_scenarios() -> tuple[PackScenario, ...]:
    """Return the scenarios of every pack, in the order of the packs."""
    return tuple(_build_scenario(row, read_table(f"packs/{name}")) for name in PACKS for row in _read_rows(name))


def draw_words(words: Mapping[str, Any], source: Random) -> JsonObject:
    """Return one drawn value for every name.

    Args:
        words: The values to draw, as in PackScenario.
        source: The random generator.
    """
    values: JsonObject = {}
    for key, choices in words.items():
        if isinstance(choices, dict):
            values[key] = source.randint(choices["from"], choices["to"])
        else:
            names = key.split(",")
            values |= zip(names, source.sample(choices, len(names)), strict=True)
    return values


def fill_values(value: Any, values: Mapping[str, Any]) -> Any:
    """Return the JSON value with every placeholder `$name` or `${name}` replaced; `$$` becomes `$`.

    A string that is only `$name` becomes the value itself, which may be a number. In the member `tool` of an object
    underscores replace spaces.

    Raises:
        KeyError: A placeholder has no value.
        ValueError: A `$` begins neither a placeholder nor `$$`.
    """
    if isinstance(value, str):
        match = _PLACEHOLDER.fullmatch(value)
        return (
            values[match[1]]
            if match
            else fill_placeholders(value, {name: str(value) for name, value in values.items()})
        )
    if isinstance(value, list):
        return [fill_values(item, values) for item in value]
    if isinstance(value, Mapping):
        filled = {key: fill_values(item, values) for key, item in value.items()}
        return filled | {"tool": filled["tool"].replace(" ", "_")} if "tool" in filled else filled
    return value


def _read_rows(name: str) -> list[JsonObject]:
    rows: list[JsonObject] = read_table(f"packs/{name}")["scenarios"]
    return rows


def _build_scenario(row: JsonObject, pack: JsonObject) -> PackScenario:
    """Return the scenario of a row. Fields of the row override those of the pack; the tools are the pack's."""
    shared_fields = {key: value for key, value in pack.items() if key not in ("scenarios", "tools")}
    return PackScenario(**freeze_row({**shared_fields, **row}), tools=offered_tools.build_pool(pack["tools"]))


def _build_message(row: JsonObject) -> Message:
    return dict(row)
