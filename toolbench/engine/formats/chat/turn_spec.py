"""The parts of a model family's turn format."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from toolbench.engine.formats.types import TextCall

Frame: TypeAlias = tuple[str, str]  # the text before and the text after
EMPTY_FRAME: Frame = ("", "")


class ToolsPosition(Enum):
    """The position of the tools in a prompt.

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
    """The text around the messages of a conversation.

    A frame is a pair: the text before and the text after.

    Attributes:
        stop_texts: texts that end an answer; after one of them, the end of the turn is not written again.
        user_frame: the frame of a user message.
        assistant_frame: the frame of an assistant turn.
        system_frame: the frame of a system message; None if there is no system turn, so that the system text is put
            before the text of the next user message.
        results_frame: the frame of the results of one answer, or with `has_frame_per_result` of each result.
        tools_position: where the prompt describes the tools.
        tools_frame: the frame of the tools, if they have a turn of their own.
        prompt_start: the beginning of the prompt.
        requested_turn_start: the beginning of the assistant turn that the prompt asks for; None for that of
            `assistant_frame`.
        end_after_calls: the end of an assistant turn with calls; None for that of `assistant_frame`.
        start_after_results: the beginning of an assistant turn after results; None for that of `assistant_frame`. It is
            left out before reasoning.
        text_frame: the frame of an assistant's text without calls.
        preamble_frame: the frame of an assistant's text before calls.
        separators_before_calls: the texts before calls: the first after an assistant's text, the second if there is no
            text.
        reasoning_frame: the frame of reasoning; None for that of the text format.
        missing_reasoning: the text that replaces missing reasoning.
        missing_reasoning_before_calls: the text that replaces missing reasoning in a turn with calls; None for
            `missing_reasoning`.
        has_frame_per_result: whether each result has a frame of its own.
        keeps_requested_start: whether the turn that the prompt asks for begins with `requested_turn_start` also after
            results.
        reminder: the text before the turn that the prompt asks for, if there are tools.
        build_id: builds, from a call and its position in the conversation, an id that the format can write; None if the
            format can write any id, or writes none.
    """

    user_frame: Frame
    assistant_frame: Frame
    stop_texts: tuple[str, ...]
    system_frame: Frame | None = None
    results_frame: Frame = EMPTY_FRAME
    tools_position: ToolsPosition = ToolsPosition.SYSTEM
    tools_frame: Frame = EMPTY_FRAME
    prompt_start: str = ""
    requested_turn_start: str | None = None
    end_after_calls: str | None = None
    start_after_results: str | None = None
    text_frame: Frame = EMPTY_FRAME
    preamble_frame: Frame = EMPTY_FRAME
    separators_before_calls: tuple[str, str] = ("\n\n", "")
    reasoning_frame: Frame | None = None
    missing_reasoning: str = ""
    missing_reasoning_before_calls: str | None = None
    has_frame_per_result: bool = False
    keeps_requested_start: bool = False
    reminder: str = ""
    build_id: Callable[[TextCall, int], str] | None = None

    @property
    def effective_turn_start(self) -> str:
        """The beginning of the assistant turn that the prompt asks for."""
        return self.assistant_frame[0] if self.requested_turn_start is None else self.requested_turn_start


def build_role_turns(
    role_frame: Frame, end: str, results_role: str, tools_position: ToolsPosition, *stop_texts: str
) -> TurnSpec:
    """Return a turn format whose turns begin with the name of their role inside a frame.

    Args:
        role_frame: the texts before and after the name of the role.
        end: the end of a turn.
        results_role: the role of results. Each result has a turn of its own unless this is `user`.
        tools_position: where the prompt describes the tools.
        stop_texts: texts that end an answer.
    """

    def build_frame(role: str) -> Frame:
        return role_frame[0] + role + role_frame[1], end

    return TurnSpec(
        system_frame=build_frame("system"),
        user_frame=build_frame("user"),
        assistant_frame=build_frame("assistant"),
        results_frame=build_frame(results_role),
        tools_position=tools_position,
        stop_texts=stop_texts,
        has_frame_per_result=results_role != "user",
    )
