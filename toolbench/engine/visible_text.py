"""Detection of texts without visible characters."""

import unicodedata

_BLANK_CATEGORIES = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})  # spaces, separators, control and format characters
# Characters of other categories that are invisible, by first and last code point.
_BLANK_RANGES = (
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian variation selectors
    (0x2800, 0x2800),  # Braille pattern blank
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
    (0xE0100, 0xE01EF),  # further variation selectors
)
_BLANK_CODES = frozenset(code for first, last in _BLANK_RANGES for code in range(first, last + 1))


def is_blank(text: str) -> bool:
    """Return whether the text has no visible character.

    Invisible are spaces, separators, control and format characters (such as the zero-width space), and the characters
    in _BLANK_RANGES. Every other character counts as visible.
    """
    return all(
        unicodedata.category(character) in _BLANK_CATEGORIES or ord(character) in _BLANK_CODES for character in text
    )
