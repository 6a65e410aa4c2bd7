"""What a family's way of writing turns is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from toolbench.engine.formats.types import TextCall

Frame: TypeAlias = tuple[str, str]
EMPTY_FRAME: Frame = ("", "")


class ToolsPosition(Enum):
    """Where the tools are told: at the end of the system text or at its head, in front of the first user's text, or as
    a turn of their own before the system's, behind it, or before the last user's."""

    SYSTEM = "system"
    SYSTEM_HEAD = "system head"
    USER = "user"
    BEFORE_SYSTEM = "before system"
    AFTER_SYSTEM = "after system"
    BEFORE_LAST_USER = "before last user"


@dataclass(frozen=True, slots=True)
class TurnSpec:
    """What stands before and after each side's words. `system` None: such a text goes in front of the next user's.

    `text` is around what the assistant says to the user, `preamble` around the same before calls, and `joint` stands
    before calls: behind such words, or where there are none. What it thought is told between the two of `thought`
    (None: as the format writes it), and `unthought` stands where nothing is told; before calls, `unthought_calls`. An
    assistant's turn that calls ends with `pauses`, and after results the assistant goes on with `resumes`, or with what
    it thought; None for any of the three means: as always. With `reopens` a turn that is asked for after results begins
    as always all the same. `apart`: `results` are around each result, not around all. `reminds` is told before the turn
    that is asked for, where there are tools. `stops` end an answer. `ids` makes an id that can be written of a call and
    its place in the conversation; None where any can, or none is."""

    user: Frame
    assistant: Frame
    stops: tuple[str, ...]
    system: Frame | None = None
    results: Frame = EMPTY_FRAME
    tools: ToolsPosition = ToolsPosition.SYSTEM
    tools_turn: Frame = EMPTY_FRAME
    begins: str = ""
    opening: str | None = None
    pauses: str | None = None
    resumes: str | None = None
    text: Frame = EMPTY_FRAME
    preamble: Frame = EMPTY_FRAME
    joint: tuple[str, str] = ("\n\n", "")
    thought: Frame | None = None
    unthought: str = ""
    unthought_calls: str | None = None
    apart: bool = False
    reopens: bool = False
    reminds: str = ""
    ids: Callable[[TextCall, int], str] | None = None

    @property
    def asks(self) -> str:
        """What begins the assistant's turn that is asked for."""
        return self.assistant[0] if self.opening is None else self.opening


def build_role_turns(heads: Frame, end: str, results: str, tools: ToolsPosition, *stops: str) -> TurnSpec:
    """Return turns that begin with the name of their role between `heads`; all have the same end."""

    def frame(role: str) -> Frame:
        return heads[0] + role + heads[1], end

    return TurnSpec(
        system=frame("system"),
        user=frame("user"),
        assistant=frame("assistant"),
        results=frame(results),
        tools=tools,
        stops=stops,
        apart=results != "user",
    )
