"""Check of the names of new entries of the library, and names of copies."""

import re
from collections.abc import Container
from itertools import count

MAX_NAME_CHARACTERS = 80
_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]+")
_URL_WORDS = {"new"}  # words that have a name's place in a URL, as in /presets/new/


def find_name_error(name: str, taken: Container[str], reserved: Container[str] = ()) -> str:
    """Return why an entry cannot have this name; "" if it can.

    Args:
        name: the name as typed.
        taken: names of the other entries, including archived ones.
        reserved: names that no entry may have, in lower case and with underscores instead of hyphens. Before the
            comparison, `name` is changed in the same way.
    """
    if len(name) > MAX_NAME_CHARACTERS or not _NAME_PATTERN.fullmatch(name):
        return f"Use 1 to {MAX_NAME_CHARACTERS} characters: letters A to Z and a to z, digits, hyphens and underscores."
    if name.lower().replace("-", "_") in reserved or name in _URL_WORDS:
        return f"The name {name} is reserved. Choose another name."
    if name in taken:
        return f"There is already an entry {name}; it may be archived. Choose another name."
    return ""


def build_copy_name(name: str, taken: Container[str]) -> str:
    """Return the first name for a copy that is not taken: `NAME_copy`, else `NAME_copy_2`, `NAME_copy_3` and so on.

    A long name is truncated first.
    """
    stem = f"{name[: MAX_NAME_CHARACTERS - 10]}_copy"
    numbered_names = (f"{stem}_{number}" for number in count(2))
    return stem if stem not in taken else next(candidate for candidate in numbered_names if candidate not in taken)
