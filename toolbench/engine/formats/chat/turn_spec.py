"""The parts of a model family's turn format."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from toolbench.engine.formats.types import TextCall

Frame: TypeAlias = tuple[str, str]
EMPTY_FRAME: Frame = ("", "")


class ToolsPosition(Enum):
    """Where a prompt describes the tools.

    Attributes:
        SYSTEM: at the end of the system text.
        SYSTEM_HEAD: at the beginning of the system text.
        USER: before the text of the first user message.
        BEFORE_SYSTEM: in a turn of their own before the system turn.
        AFTER_SYSTEM: in a turn of their own behind the system turn.
        BEFORE_LAST_USER: in a turn of their own before the last user turn.
    """

    SYSTEM = "system"
    SYSTEM_HEAD = "system head"
    USER = "user"
    BEFORE_SYSTEM = "before system"
    AFTER_SYSTEM = "after system"
    BEFORE_LAST_USER = "before last user"


@dataclass(frozen=True, slots=True)
class TurnSpec:
    """The text around the messages of a conversation. A frame is the text before and the text behind.

    Attributes:
        stops: texts that end an answer.
        system: None if there is no system turn: the text is put before that of the next user message.
        results: the frame of the results of one answer, or with `apart` of each result.
        tools_turn: the frame of the tools, if they have a turn of their own.
        begins: the beginning of the prompt.
        opening: the beginning of the assistant turn that the prompt asks for; None for that of `assistant`.
        pauses: the end of an assistant turn with calls; None for that of `assistant`.
        resumes: the beginning of an assistant turn behind results; None for that of `assistant`. Before reasoning it is
            left out.
        text: the frame of an assistant's text without calls.
        preamble: the frame of an assistant's text before calls.
        joint: the text before calls: behind an assistant's text, and where there is none.
        thought: the frame of reasoning; None for that of the text format.
        unthought: the text in the place of reasoning where there is none.
        unthought_calls: the same before calls; None for `unthought`.
        apart: whether each result has a frame of its own.
        reopens: whether the turn that the prompt asks for begins with `opening` also behind results.
        reminds: the text before the turn that the prompt asks for, if there are tools.
        ids: builds an id that the format can write from a call and its position in the conversation; None if the format
            can write any id, or writes none.
    """

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
        """The beginning of the assistant turn that the prompt asks for."""
        return self.assistant[0] if self.opening is None else self.opening


def build_role_turns(heads: Frame, end: str, results: str, tools: ToolsPosition, *stops: str) -> TurnSpec:
    """Return turns that begin with their role's name between `heads` and end with `end`."""

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
