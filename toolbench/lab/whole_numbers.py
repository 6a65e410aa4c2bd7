"""Whole numbers as people type them and as addresses hold them."""

LARGEST = 2**63 - 1  # that a column of ids takes
_DIGITS = len(str(LARGEST))


def whole_number(text: str, *, least: int = 0, most: int = LARGEST) -> int | None:
    """What plain digits say; None for anything else, and for a number out of bounds."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return None
    number = int(text)
    return number if least <= number <= most else None
