"""Fields of the case study's reports, by kind: trial, request, summary, model, row."""

import json
from pathlib import Path

_FIELDS_FILE = Path(__file__).parent / "data" / "report_fields.json"


def read_fields(kind: str) -> set[str]:
    return set(json.loads(_FIELDS_FILE.read_text(encoding="utf-8"))[kind])
