"""How a run's end is called in the case study."""

from toolbench.engine.events import End

CATEGORY: dict[End, str] = {
    End.FINAL: "",
    End.LENGTH: "",
    End.NO_TOOL_CALLS: "NO_TOOL_CALLS",
    End.TOOL_ERROR: "TOOL_ERROR",
    End.MAX_TURNS_EXCEEDED: "EXCEPTION",
    End.DEADLINE_EXCEEDED: "TIMEOUT",
    End.CANCELLED: "EXCEPTION",
    End.BUDGET_SPENT: "EXCEPTION",
    End.PROVIDER_ERROR: "EXCEPTION",
}
"""The case study's category of every end. FINAL and LENGTH have none: assertions decide. The case study knows no
cancelling and no budget, and has no word of its own for too many turns. A PROVIDER_ERROR is EXCEPTION only where the
failed exchange has no class of its own (its HTTP status, a timeout)."""
