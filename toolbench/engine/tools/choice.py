"""The tool choice, which says which calls a model may make, and its form in requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolbench.engine.types import JsonObject

RequestChoice: TypeAlias = str | JsonObject  # a tool choice in the form of a chat request


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The calls that a model may make in its answer.

    Attributes:
        kind: `auto`: the model decides; `none`: it must not call; `required`: it must call a tool; `named`: it must
            call the tool `name`.
        name: the tool's name for `named`; "" for other kinds.

    Raises:
        ValueError: the kind is unknown, `named` has no name, or another kind has one.
    """

    kind: Literal["auto", "none", "required", "named"] = "auto"
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ("auto", "none", "required", "named"):
            raise ValueError(f"a tool choice is auto, none, required or named, not {self.kind!r}")
        if bool(self.name.strip()) != (self.kind == "named"):
            raise ValueError("a tool's name belongs to the choice `named`, and only to it")

    @classmethod
    def named(cls, name: str) -> "ToolChoice":
        """Return the choice that requires a call of this tool."""
        return cls("named", name)

    def to_openai(self) -> RequestChoice:
        """Return the choice as the field `tool_choice` of a chat request."""
        return {"type": "function", "function": {"name": self.name}} if self.kind == "named" else self.kind


def to_request_choice(choice: ToolChoice | str | Mapping[str, Any]) -> RequestChoice:
    """Return a choice as the field `tool_choice` of a chat request.

    A text or a mapping must have this form already.
    """
    if isinstance(choice, ToolChoice):
        return choice.to_openai()
    return choice if isinstance(choice, str) else dict(choice)
