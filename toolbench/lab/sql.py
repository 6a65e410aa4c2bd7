"""Loader of SQL files, and a condition on many ids.

`load_statement("worker/claim_trials")` reads `worker/sql/claim_trials.sql`. Each file begins with a comment: what the
statement does and, where they matter, its parameters, what it returns and the order of its locks.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from django.contrib.postgres.fields import ArrayField
from django.db.models import BigIntegerField, BooleanField, Func, Value

_LAB_FOLDER = Path(__file__).parent
_PART = re.compile(r"\{([a-z0-9_]+)\}")
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)


def load_statement(name: str, **parts: str) -> str:
    """Return the SQL of a file without its comments.

    Args:
        name: package and file name, as in `worker/claim_trials`.
        parts: SQL by part name; it replaces `{name}` in the file. Never pass user input here: values are query
            parameters.

    Raises:
        KeyError: the file has a part that is not given.
    """
    return _PART.sub(lambda part: parts[part[1]], _read_file(name))


def has_any_id(column: str, ids: Iterable[int]) -> Func:
    """Return the condition that a column has one of these ids, for `filter()`.

    The ids are one parameter, an array. `column__in` makes each id a parameter: for hundreds of ids, Django and the
    driver then take longer than the database.
    """
    array = Value(list(ids), output_field=ArrayField(BigIntegerField()))
    return Func(column, array, template="%(expressions)s)", arg_joiner=" = ANY(", output_field=BooleanField())


@cache
def _read_file(name: str) -> str:
    package, _, file = name.rpartition("/")
    return _COMMENT.sub("", (_LAB_FOLDER / package / "sql" / f"{file}.sql").read_text("utf-8")).strip()
