"""Which calls a model may make: a choice as a value, and as requests spell it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolbench.engine.types import JsonObject

RequestChoice: TypeAlias = str | JsonObject


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`auto`: the model decides; `none`: it may not call; `required`: it must call some tool; `named`: the tool
    `name`. Raises ValueError for a name without `named`, and the other way round."""

    kind: Literal["auto", "none", "required", "named"] = "auto"
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ("auto", "none", "required", "named"):
            raise ValueError(f"a tool choice is auto, none, required or named, not {self.kind!r}")
        if bool(self.name.strip()) != (self.kind == "named"):
            raise ValueError("a tool's name belongs to the choice `named`, and only to it")

    @classmethod
    def named(cls, name: str) -> "ToolChoice":
        """This tool and no other."""
        return cls("named", name)

    def to_openai(self) -> RequestChoice:
        """As a request spells it."""
        return {"type": "function", "function": {"name": self.name}} if self.kind == "named" else self.kind


def to_request_choice(choice: ToolChoice | str | Mapping[str, Any]) -> RequestChoice:
    """A choice as a request spells it. What is spelled already stays as it is, words of a single vendor too."""
    if isinstance(choice, ToolChoice):
        return choice.to_openai()
    return choice if isinstance(choice, str) else dict(choice)
