"""The named transforms that smooth over what endpoints do differently: ten under their published names, and ours."""

from toolbench.engine.transforms.applying import (
    KINDS,
    apply_calls,
    apply_message,
    apply_request,
    apply_response,
    apply_result,
    apply_tools,
    check_names,
    describe,
    names,
)
from toolbench.engine.transforms.registry import Facts, UnknownTransform

__all__ = [
    "KINDS",
    "Facts",
    "UnknownTransform",
    "apply_calls",
    "apply_message",
    "apply_request",
    "apply_response",
    "apply_result",
    "apply_tools",
    "check_names",
    "describe",
    "names",
]
