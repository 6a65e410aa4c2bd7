"""Repairs of arguments that are almost JSON.

Each repair has a name, is requested by this name and recorded under it. A repair that has to invent what the model was
about to write is only shown, never executed.
"""

from toolbench.engine.repairs.registry import REPAIR_NAMES, RepairedArguments, check_repairs, describe_repair, repair

__all__ = ["REPAIR_NAMES", "RepairedArguments", "check_repairs", "describe_repair", "repair"]
