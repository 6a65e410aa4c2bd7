"""Which engine ran a trial: a digest of its own source, so that a change cannot be forgotten."""

import hashlib
from functools import cache
from pathlib import Path

from toolbench import engine


@cache
def engine_version() -> str:
    """Equal for equal source and data files of the engine; 12 hexadecimal digits."""
    folder = Path(engine.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".json", ".jinja")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
