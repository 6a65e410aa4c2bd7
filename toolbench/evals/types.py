"""Values that scenarios, judging and the lab exchange."""

from dataclasses import field
from typing import Protocol

from toolbench.engine.events import LoopResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.loop.run_state import FurtherMessage
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject, Message
from toolbench.evals.expected_calls import ExpectedCalls

PUBLISHED_WORDING = "parity"
DRAWN = "drawn"


@light(frozen=True, slots=True)
class Instance:
    """One concrete task: drawn from `seed`, or the case study's own wording (`kind` parity).

    Attributes:
        layer: The scenario's policy patch.
        values: What was drawn, as the scenario needs it for judging.
        further: The user's messages after the first; each is sent after the previous one is answered.
    """

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
    """The simulated environment of one execution."""

    def call(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Run a tool and return its answer. Any exception but the one below becomes an INTERNAL_ERROR.

        Raises:
            ToolArgumentError: The tool refuses the arguments (`engine.errors`).
        """
        ...

    def snapshot(self) -> JsonObject:
        """Return a copy of the state, for judging."""
        ...


@light(frozen=True, slots=True)
class Check:
    """The result of one check; `detail` says why it failed."""

    name: str
    ok: bool
    detail: str = ""


@light(frozen=True, slots=True)
class ProblemLocation:
    """The place of a problem: turn and call from 0 (None without a call), a JSON path, and a plain sentence."""

    turn: int
    call: int | None
    path: str
    sentence: str


@light(frozen=True, slots=True)
class Verdict:
    """The result of judging one trial.

    Attributes:
        outcome: pass, fail, infra, na or cancelled.
        task_pass: Whether protocol and state are right; None if that cannot be decided.
        parity_pass: Whether the case study's rule is met; None if it cannot be decided.
        failure_class: A code of evals/data/failure_classes.json; "" for a pass.
        category: The case study's word for the failure.
        behaviour_seen: Whether the scenario's behaviour occurred; None if it names none.
        avoided: Whether the model passed without the error that the scenario provokes.
    """

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
    """A task that can be drawn, run and judged."""

    slug: str
    version: int
    title: str
    group: str  # tools, control, weather, intent or a pack
    intent: str  # one plain sentence for the pages
    control: bool
    public: bool
    methods: tuple[str, ...]  # the methods that can express the task
    straight_requests: int  # the fewest requests of a trial that passes

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed; `kind` is PUBLISHED_WORDING or DRAWN."""
        ...

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the calls that the instance expects."""
        ...

    def open(self, instance: Instance) -> Workspace:
        """Return a new workspace for one execution."""
        ...

    def judge(self, instance: Instance, ended: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict on a finished run."""
        ...
