"""Mending arguments that are not quite JSON. Every repair has a name, is asked for by that name and is told by it; one
that would have to invent what a model was about to write is only ever shown, never executed."""

from toolbench.engine.repairs.registry import REPAIR_NAMES, RepairedArguments, check_repairs, describe_repair, repair

__all__ = ["REPAIR_NAMES", "RepairedArguments", "check_repairs", "describe_repair", "repair"]
