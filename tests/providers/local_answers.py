"""Answers recorded from the live local model, byte for byte, for tests that replay them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA_FOLDER = Path(__file__).parent / "data" / "local"


@dataclass(frozen=True)
class RecordedAnswer:
    """Recorded answer: `body` is its exact text, `request` the body that was sent to `path`."""

    what: str
    server: str
    path: str
    request: dict[str, Any]
    status: int
    content_type: str
    body: str

    @property
    def error_type(self) -> str:
        return str(json.loads(self.body)["error"]["type"])


def list_names() -> list[str]:
    return sorted(path.stem for path in DATA_FOLDER.glob("*.json"))


def read_answer(name: str) -> RecordedAnswer:
    return RecordedAnswer(**json.loads((DATA_FOLDER / f"{name}.json").read_text("utf-8")))
