"""The steps of a trial as the taxonomy reads them: the same values from a drive just over and from stored facts."""

from toolbench.engine.events import ToolResult
from toolbench.engine.light_dataclass import light
from toolbench.engine.types import Turn


@light(frozen=True, slots=True)
class ExchangeAttempt:
    """One attempt of an exchange. `error` is its code where it failed, a row of providers/data/outcomes.json;
    `tool_support` says that the endpoint cannot use tools. Turns count from 0."""

    ordinal: int
    turn: int
    tools_sent: bool
    answer: Turn | None
    error: str = ""
    tool_support: bool = False


@light(frozen=True, slots=True)
class ToolRun:
    """One call with what became of it."""

    ordinal: int
    turn: int
    result: ToolResult

    @property
    def ok(self) -> bool:
        return self.result.envelope.ok

    @property
    def tool(self) -> str:
        return self.result.envelope.tool_name or self.result.call.name


WireStep = ExchangeAttempt | ToolRun
