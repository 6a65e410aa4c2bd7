"""What the case study's reports hold, by kind: trial, request, summary, model, row."""

import json
from pathlib import Path

_TABLE = Path(__file__).parent / "data" / "report_fields.json"


def fields(kind: str) -> set[str]:
    return set(json.loads(_TABLE.read_text(encoding="utf-8"))[kind])
