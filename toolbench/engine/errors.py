"""Everything the engine raises. What goes wrong in a tool or at an endpoint is a value (see events) instead."""

from dataclasses import dataclass


class EngineError(Exception):
    """The root of the tree."""


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """One bad setting: the layer it stands in, its key, and a sentence that says what is allowed."""

    layer: str
    key: str
    message: str


class PolicyError(EngineError):
    """Layers that cannot be resolved. `problems` lists every bad setting, not only the first."""

    def __init__(self, problems: tuple[PolicyProblem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.layer}: {p.key}: {p.message}" for p in problems))


class PlanError(EngineError):
    """A plan that cannot be started: no model, or a set of tools that cannot be sent."""


class MalformedAnswerError(EngineError):
    """Bytes that are no answer. `code` is stable snake_case: empty_body, invalid_utf8, not_json, too_deep, not_object,
    error_object, no_choices, no_message."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class InvalidJsonError(EngineError):
    """A text that is not JSON as the standard has it. `code` is not_json or too_deep."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class ToolArgumentError(EngineError):
    """Raised by a tool that refuses its arguments; the model is told the message under ARGUMENT_ERROR."""
