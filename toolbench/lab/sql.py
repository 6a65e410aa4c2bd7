"""Loader of SQL files. `load_statement("worker/claim_trials")` reads `worker/sql/claim_trials.sql`.

Each file begins with a comment: what the statement does and, where they matter, its parameters, what it returns and
the order of its locks.
"""

import re
from functools import cache
from pathlib import Path

_LAB_FOLDER = Path(__file__).parent
_PART = re.compile(r"\{([a-z0-9_]+)\}")
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


def load_statement(name: str, **parts: str) -> str:
    """Return the SQL of a file without its comments.

    Args:
        name: package and file name, as in `worker/claim_trials`.
        parts: SQL that replaces `{part}` in the file. It is written in the code, never taken from input; values are
            query parameters.

    Raises:
        KeyError: the file names a part that is not given.
    """
    return _PART.sub(lambda part: parts[part[1]], _read_file(name))


@cache
def _read_file(name: str) -> str:
    package, _, file = name.rpartition("/")
    return _COMMENT.sub("", (_LAB_FOLDER / package / "sql" / f"{file}.sql").read_text("utf-8")).strip()
