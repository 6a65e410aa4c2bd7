"""Example of a test case with two tools; the parameters of one have a nested object and an enum."""

from toolbench.engine.types import JsonObject
from toolbench.lab.cases.drafts import CaseDraft, render_json

EXAMPLE_NOTE = "This is an example. Run it as it is, or replace its tools, message and call with yours."

_SCHEDULE_TOOL: JsonObject = {
    "name": "schedule_delivery",
    "description": "Sets when and where an order is delivered.",
    "parameters": {
        "type": "object",
        "properties": {
            "order": {"type": "string", "description": "Number of the order, such as A-1042."},
            "window": {"type": "string", "enum": ["morning", "afternoon", "evening"]},
            "address": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
                "required": ["city", "zip"],
            },
        },
        "required": ["order", "window", "address"],
    },
}
_CANCEL_TOOL: JsonObject = {
    "name": "cancel_order",
    "description": "Cancels an order that was not sent yet.",
    "parameters": {
        "type": "object",
        "properties": {"order": {"type": "string"}, "reason": {"type": "string"}},
        "required": ["order"],
    },
}
EXAMPLE_DRAFT = CaseDraft(
    tools=render_json([{"type": "function", "function": tool} for tool in (_SCHEDULE_TOOL, _CANCEL_TOOL)]),
    message='Please schedule the delivery of order "A-1042" for the evening, to "Lisbon", zip "1100-148".',
    expect=render_json(
        {
            "name": "schedule_delivery",
            "arguments": {
                "order": "A-1042",
                "window": "evening",
                "address": {"city": "Lisbon", "zip": "1100-148"},
            },
        }
    ),
)
