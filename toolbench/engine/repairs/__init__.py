"""Repairs of arguments that are almost JSON.

Repairs are requested and recorded by name. Arguments whose missing end was invented are shown but never executed.
"""

from toolbench.engine.repairs.registry import (
    REPAIR_NAMES,
    RepairedArguments,
    check_repairs,
    repair_arguments,
)

__all__ = ["REPAIR_NAMES", "RepairedArguments", "check_repairs", "repair_arguments"]
