"""Where an imported run comes from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from toolbench.engine.types import JsonObject


@dataclass(frozen=True, slots=True)
class Origin:
    """`kind` is bundle or inspect; `sha256` of the evidence: the same evidence is imported once."""

    kind: str
    sha256: str
    file: str
    source: JsonObject
    made_at: str = ""
    imported_at: str = ""
    left_out: tuple[JsonObject, ...] = ()
    private: tuple[str, ...] = ()  # scenarios that go into a bundle only when they are asked for
    renamed: Mapping[str, str] = field(default_factory=dict)  # there -> here, where a name was taken by something else
    note: str = ""

    def to_json(self) -> JsonObject:
        return asdict(self)
