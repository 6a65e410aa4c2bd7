"""Parts of the format of a body that masking depends on: events of a stream, and labels of objects."""

import re
from collections.abc import Mapping

# A line of a stream such as `data: {"index": 0}` or `error: …`; its group is the text after the colon.
DATA_LINE = re.compile(rb"(?:\A\s*|[\r\n])(?:data|error):[ \t]*([^\r\n]*)")
CONTAINER_STARTS = (b"{", b"[")
BOM = b"\xef\xbb\xbf"
MAX_DEPTH = 128  # `extract_texts` counts texts in deeper containers as texts of the container at this depth
ITEM_KEYS = ("index", "output_index", "id")  # `output_index` is in events of the Responses API
_INDEX_KEYS = ITEM_KEYS[:2]
_LABEL_TYPES = (int, str, float)


def read_label(fields: Mapping[str, object], *, is_item: bool) -> str:
    """Return the label that distinguishes an object from others at the same place.

    Args:
        fields: the fields of the object, at least those named in `ITEM_KEYS`.
        is_item: whether the object is an item of a list.

    Returns:
        The first of the fields `index`, `output_index` and, for an item, `id` that is a number or a text, as text;
        "" if none is.
    """
    for key in ITEM_KEYS if is_item else _INDEX_KEYS:
        if key in fields and type(fields[key]) in _LABEL_TYPES:
            return str(fields[key])
    return ""
