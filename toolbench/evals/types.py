"""What is tried and what is said about it: the values that scenarios, judging and the lab exchange."""

from dataclasses import field
from typing import Protocol

from toolbench.engine.events import LoopResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.loop.further_message import FurtherMessage
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject, Message
from toolbench.evals.expected_calls import ExpectedCalls

PUBLISHED_WORDING = "parity"
DRAWN = "drawn"


@light(frozen=True, slots=True)
class Instance:
    """One concrete task: drawn from `seed`, or the case study's own wording (`kind` parity). `layer` is the
    scenario's policy patch. `further` are the user's messages after the first, each said once the one before it is
    answered."""

    scenario: str
    version: int
    kind: str
    seed: int
    system: str
    user_text: str
    tools: tuple[ToolDefinition, ...] = ()
    history: tuple[Message, ...] = ()
    layer: JsonObject = field(default_factory=dict)
    values: JsonObject = field(default_factory=dict)
    prompt_version: str = "1"
    further: tuple[FurtherMessage, ...] = ()


class Workspace(Protocol):
    """A trial's own world, fresh per execution."""

    def call(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Runs a tool. Raises engine.errors.ToolArgumentError for arguments it refuses; any other exception is an
        INTERNAL_ERROR."""
        ...

    def snapshot(self) -> JsonObject: ...


@light(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str = ""


@light(frozen=True, slots=True)
class ProblemLocation:
    """Where it went wrong first: turn (from 0), the call's place in that turn or None, a JSON path, and a plain
    sentence."""

    turn: int
    call: int | None
    path: str
    sentence: str


@light(frozen=True, slots=True)
class Verdict:
    """`outcome` is pass, fail, infra, na or cancelled. `task_pass` is protocol and state; `parity_pass` the case
    study's rule; both None where nothing can be said. `failure_class` is a row of evals/data/failure_classes.json (""
    for a pass); `category` the case study's word for it. `behaviour_seen` is None where the scenario names no
    behaviour."""

    outcome: str
    task_pass: bool | None
    parity_pass: bool | None
    failure_class: str = ""
    category: str = ""
    sentence: str = ""
    rule: str = ""
    behaviour_seen: bool | None = None
    avoided: bool = False
    checks: tuple[Check, ...] = ()
    first_bad: ProblemLocation | None = None
    counts: JsonObject = field(default_factory=dict)


class Scenario(Protocol):
    slug: str
    version: int
    title: str
    group: str  # tools, control, weather, intent
    intent: str  # one plain sentence for the pages
    control: bool
    public: bool
    methods: tuple[str, ...]  # the ways of asking that can express the task
    straight_requests: int  # of a trial that passes without a detour: no passing trial has fewer

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance: ...

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls: ...

    def open(self, instance: Instance) -> Workspace: ...

    def judge(self, instance: Instance, ended: LoopResult, workspace: Workspace) -> Verdict: ...
