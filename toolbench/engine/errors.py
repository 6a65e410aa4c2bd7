"""Exceptions of the engine. A failure of a tool or an endpoint is a value instead; see `events`."""

from dataclasses import dataclass


class EngineError(Exception):
    """Base class of the engine's exceptions."""


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """One invalid setting.

    Attributes:
        layer: name of the policy layer that has the setting.
        key: name of the setting.
        message: what is wrong or what is allowed, as part of a sentence without the key.
    """

    layer: str
    key: str
    message: str


class PolicyError(EngineError):
    """Policy layers that cannot be resolved.

    Attributes:
        problems: every invalid setting, not only the first.
    """

    def __init__(self, problems: tuple[PolicyProblem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{problem.layer}: {problem.key}: {problem.message}" for problem in problems))


class PlanError(EngineError):
    """A plan that cannot be run, or a part of one that cannot be used, such as a tool, a text format or a grammar."""


class MalformedAnswerError(EngineError):
    """A response body that cannot be read as an answer of the model.

    Attributes:
        code: empty_body, invalid_utf8, not_json, too_deep, not_object, error_object, no_choices or no_message. The
            codes do not change between versions.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class InvalidJsonError(EngineError):
    """A text that is not valid JSON or, where Python is read, not a valid Python value or call.

    Attributes:
        code: not_json or too_deep; for text that is read as Python also too_long, not_python, not_literal, no_call,
            no_name or repeated_name.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class ToolArgumentError(EngineError):
    """Refusal of arguments, raised by a tool. The model gets the message with the code ARGUMENT_ERROR."""
