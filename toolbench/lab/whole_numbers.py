"""Whole numbers in forms and query strings."""

MAX_ID = 2**63 - 1  # that a column of ids takes
_DIGITS = len(str(MAX_ID))


def parse_whole_number(text: str, *, least: int = 0, most: int = MAX_ID) -> int | None:
    """Parse a text of plain digits; return None for any other text and for a number out of bounds."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return None
    number = int(text)
    return number if least <= number <= most else None
