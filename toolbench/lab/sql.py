"""SQL statements in files: `statement("worker/claim_trials")` reads `worker/sql/claim_trials.sql` beside this file.

A file begins with a comment: what the statement does, its parameters, what it returns and the order of its locks.
"""

import re
from functools import cache
from pathlib import Path

_ROOMS = Path(__file__).parent
_PART = re.compile(r"\{([a-z0-9_]+)\}")
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


def statement(name: str, **parts: str) -> str:
    """Return a statement without its comments.

    Args:
        name: the package and the name of the file, as in `worker/claim_trials`.
        parts: SQL that stands in the file as `{part}`. It comes from our own tables of columns, never from input:
            values are parameters of the query.

    Raises:
        KeyError: the file names a part that is not given.
    """
    return _PART.sub(lambda part: parts[part[1]], _read(name))


@cache
def _read(name: str) -> str:
    room, _, file = name.rpartition("/")
    return _COMMENT.sub("", (_ROOMS / room / "sql" / f"{file}.sql").read_text("utf-8")).strip()
