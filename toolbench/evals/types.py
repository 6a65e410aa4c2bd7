"""The types that scenarios, judging and the lab share, such as instances, workspaces and verdicts."""

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
    """One concrete task of a scenario.

    Attributes:
        kind: PUBLISHED_WORDING or DRAWN.
        seed: The start of the random generator that drew the instance.
        history: The messages between `system` and `user_text`.
        layer: The scenario's policy patch.
        values: The drawn values that the scenario needs for the workspace and for judging.
        prompt_version: The version of the wording.
        further: The user's messages after `user_text`; each is sent after the previous one is answered.
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
        """Run a tool and return its answer.

        The answer may be an awaitable. A dict with the key `ok` is the result envelope of the call: unless `ok` is
        True, the call failed. The loop reports any exception other than ToolArgumentError as INTERNAL_ERROR.

        Raises:
            ToolArgumentError: The tool refuses the arguments.
        """
        ...

    def snapshot(self) -> JsonObject:
        """Return a copy of the state, for judging."""
        ...


@light(frozen=True, slots=True)
class Check:
    """The result of one check of a trial.

    Attributes:
        name: The condition that is checked, as text.
        detail: More about the result, such as the reason why the check fails or a JSON path; may be "".
    """

    name: str
    ok: bool
    detail: str = ""


@light(frozen=True, slots=True)
class ProblemLocation:
    """The location of a problem in a run.

    Attributes:
        turn: The turn, from 0.
        call: The index of the call in the turn, from 0; None if the problem concerns no call.
        path: The JSON path in the call's arguments or in the response.
        sentence: The problem as a sentence with its turn and call, such as `Turn 2, parsed call 1: …`.
    """

    turn: int
    call: int | None
    path: str
    sentence: str


@light(frozen=True, slots=True)
class Verdict:
    """The result of judging one trial.

    Attributes:
        outcome: pass, fail, infra, na or cancelled.
        task_pass: Whether the run ended well and all checks of the task hold; None for infra, na and cancelled.
        parity_pass: Whether the trial passes by the case study's rule; None for cancelled, and if the case study does
            not have the scenario.
        failure_class: A code of evals/data/failure_classes.json; "" for a pass.
        category: The case study's word for the failure; "" if the trial does not fail by its rule or, where that rule
            is not applied, by the outcome.
        sentence: The problem in plain words; "" for a pass.
        rule: The rule of a pass in plain words.
        behaviour_seen: Whether the scenario's behaviour occurred; None if the scenario names none.
        avoided: Whether the task was done without the error that the scenario provokes. The trial may fail
            nevertheless, for instance without a final text.
        first_bad: The first problem that no later step recovered from, or the end of a run that was broken off; None
            for a pass and for the outcomes na and cancelled.
        counts: Counts of the trial, by the columns of the trials table in which they are stored.
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
    """A kind of task, whose instances can be drawn, run and judged.

    Attributes:
        group: tools, control, weather, intent, the name of a pack, `bfcl`, or for test cases of users `own` or
            `own_<group>`.
        intent: One plain sentence for the pages.
        control: Whether the scenario is a control, which shows whether the model answers at all.
        public: Whether the scenario's texts are public, so that models may have been trained on them.
        methods: The methods that can express the task without further settings. Only tests and the benchmark of
            causes choose by them: a run may use any method.
        min_requests: A lower bound of the number of requests of a trial that passes.
    """

    slug: str
    version: int
    title: str
    group: str
    intent: str
    control: bool
    public: bool
    methods: tuple[str, ...]
    min_requests: int

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed; `kind` is PUBLISHED_WORDING or DRAWN."""
        ...

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the calls that the instance expects."""
        ...

    def open(self, instance: Instance) -> Workspace:
        """Return a new workspace for one execution."""
        ...

    def judge(self, instance: Instance, loop_result: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict on a finished run."""
        ...
