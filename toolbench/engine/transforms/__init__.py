"""Named transforms that compensate for differences between endpoints.

Ten of them have the names that the case study published.
"""

from toolbench.engine.transforms.apply import (
    KINDS,
    apply_calls,
    apply_message,
    apply_request,
    apply_response,
    apply_result,
    apply_tools,
    check_names,
    list_names,
)
from toolbench.engine.transforms.registry import TransformContext, UnknownTransformError

__all__ = [
    "KINDS",
    "TransformContext",
    "UnknownTransformError",
    "apply_calls",
    "apply_message",
    "apply_request",
    "apply_response",
    "apply_result",
    "apply_tools",
    "check_names",
    "list_names",
]
