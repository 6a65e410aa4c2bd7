"""Names of the library's entries: check of a new name, and the name of a copy."""

import re
from collections.abc import Container
from itertools import count

MAX_NAME_CHARACTERS = 80
_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]+")
_URL_WORDS = {"new"}  # words that URLs of the library have at the place of a name


def find_name_error(name: str, taken: Container[str], reserved: Container[str] = ()) -> str:
    """Return why an entry cannot have this name; "" if it can.

    Args:
        name: the name as typed.
        taken: names of the other entries, including archived ones.
        reserved: names that no entry may have, in lower case with underscores. A name that differs from one of them
            only by case or by hyphens is not accepted either.
    """
    if len(name) > MAX_NAME_CHARACTERS or not _NAME_PATTERN.fullmatch(name):
        return f"Use 1 to {MAX_NAME_CHARACTERS} letters without accents, digits, hyphens and underscores."
    if name.lower().replace("-", "_") in reserved or name in _URL_WORDS:
        return f"The name {name} is reserved. Choose another name."
    if name in taken:
        return f"There is already an entry {name}; it may be archived. Choose another name."
    return ""


def build_copy_name(name: str, taken: Container[str]) -> str:
    """Return a free name for a copy."""
    stem = f"{name[: MAX_NAME_CHARACTERS - 10]}_copy"
    numbered = (f"{stem}_{number}" for number in count(2))
    return stem if stem not in taken else next(candidate for candidate in numbered if candidate not in taken)
