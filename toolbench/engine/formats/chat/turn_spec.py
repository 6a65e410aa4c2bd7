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
        AFTER_SYSTEM: in a turn of their own after the system turn.
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
    """The text around the messages of a conversation. A frame is a pair: the text before and the text after.

    Attributes:
        stops: texts that end an answer.
        user: the frame of a user message.
        assistant: the frame of an assistant turn.
        system: the frame of a system message; None if there is no system turn, so that its text is put before that of
            the next user message.
        results: the frame of the results of one answer, or with `apart` of each result.
        tools_turn: the frame of the tools, if they have a turn of their own.
        begins: the beginning of the prompt.
        opening: the beginning of the assistant turn that the prompt asks for; None for that of `assistant`.
        pauses: the end of an assistant turn with calls; None for that of `assistant`.
        resumes: the beginning of an assistant turn after results; None for that of `assistant`. It is left out before
            reasoning.
        text: the frame of an assistant's text without calls.
        preamble: the frame of an assistant's text before calls.
        joint: the texts before calls: the first after an assistant's text, the second if there is no text.
        thought: the frame of reasoning; None for that of the text format.
        unthought: the text that replaces missing reasoning.
        unthought_calls: the same before calls; None for `unthought`.
        apart: whether each result has a frame of its own.
        reopens: whether the turn that the prompt asks for begins with `opening` also after results.
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


def build_role_turns(role_frame: Frame, end: str, results_role: str, tools: ToolsPosition, *stops: str) -> TurnSpec:
    """Return a turn format whose turns begin with their role's name.

    Args:
        role_frame: the texts before and after the name of the role.
        end: the end of a turn.
        results_role: the role of results. Each result has a turn of its own unless this is `user`.
        tools: where the prompt describes the tools.
        stops: texts that end an answer.
    """

    def build_frame(role: str) -> Frame:
        return role_frame[0] + role + role_frame[1], end

    return TurnSpec(
        system=build_frame("system"),
        user=build_frame("user"),
        assistant=build_frame("assistant"),
        results=build_frame(results_role),
        tools=tools,
        stops=stops,
        apart=results_role != "user",
    )
