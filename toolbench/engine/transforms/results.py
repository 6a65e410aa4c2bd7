"""Transforms of a tool result's envelope: the object that reports data and errors of a call to the model."""

from toolbench.engine.transforms.registry import TransformKind
from toolbench.engine.types import JsonObject

TOOL_RESULT: TransformKind[JsonObject] = TransformKind("tool_result")


@TOOL_RESULT.register
def tool_result_compact_envelope(envelope: JsonObject) -> JsonObject:
    """Leave empty warnings, errors and data out of the envelope."""
    empty_values: dict[str, object] = {"warnings": [], "errors": [], "data": {}}
    empty_keys = {key for key, value in empty_values.items() if key in envelope and envelope[key] == value}
    return {key: value for key, value in envelope.items() if key not in empty_keys} if empty_keys else envelope
