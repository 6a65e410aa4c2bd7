"""The origin of an imported run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from toolbench.engine.types import JsonObject


@dataclass(frozen=True, slots=True)
class Origin:
    """Source and circumstances of an imported run, stored in `Run.origin`.

    Attributes:
        kind: "bundle" or "inspect".
        sha256: hash of a bundle's evidence, or of the whole log; see `check_not_imported`.
        file: name of the imported file.
        source: the file's own description of the run it was written from.
        made_at: when the bundle was written or the log was created, as the file states it, usually in ISO 8601;
            empty if the file does not state it.
        imported_at: when the run was imported, in ISO 8601.
        left_out: the bundle's list of left-out data; see `LeftOutItem`.
        private: slugs of private scenarios, which are exported only on request.
        renamed: new slug by old slug, of scenarios whose slugs stand for other scenarios in this database.
        note: sentences shown with the run.
    """

    kind: str
    sha256: str
    file: str
    source: JsonObject
    made_at: str = ""
    imported_at: str = ""
    left_out: tuple[JsonObject, ...] = ()
    private: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def to_json(self) -> JsonObject:
        """Return the value of the column `Run.origin`."""
        return asdict(self)
