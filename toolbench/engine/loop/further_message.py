"""What a user says after an answer, where a run goes on over several messages."""

from dataclasses import dataclass

from toolbench.engine.tools.definitions import ToolDefinition


@dataclass(frozen=True, slots=True)
class FurtherMessage:
    """One further message. `tools` are offered from then on, beside those that were offered before."""

    text: str
    tools: tuple[ToolDefinition, ...] = ()
