"""The types of the steps from which causes are classified: steps of a finished run or stored ones."""

from toolbench.engine.events import ToolResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Turn
from toolbench.evals.record_counts import read_tool_name


@light(frozen=True, slots=True)
class ExchangeAttempt:
    """One attempt at an exchange.

    Attributes:
        ordinal: The number of the step in its execution, from 1.
        turn: The turn, from 0.
        tools_sent: Whether the request offered tools, in the body or in the prompt.
        answer: The answer; None if the attempt failed, or if the bodies of the trial were removed.
        error: The error code of a failed attempt, a code of providers/data/outcomes.json or, in an imported log,
            `logged_error`; "" for success.
        is_tools_error: Whether the error says that the endpoint cannot use tools.
    """

    ordinal: int
    turn: int
    tools_sent: bool
    answer: Turn | None
    error: str = ""
    is_tools_error: bool = False


@light(frozen=True, slots=True)
class ToolRun:
    """One call with its result.

    Attributes:
        ordinal: The number of the step in its execution, from 1.
        turn: The turn, from 0.
    """

    ordinal: int
    turn: int
    result: ToolResult

    @property
    def ok(self) -> bool:
        """Return whether the call succeeded."""
        return self.result.envelope.ok

    @property
    def tool(self) -> str:
        """Return the name of the tool that ran, or else the name in the call."""
        return read_tool_name(self.result)


WireStep = ExchangeAttempt | ToolRun
