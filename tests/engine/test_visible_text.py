"""Tests of which texts are blank for a reader."""

import unicodedata

import pytest

from toolbench.engine.visible_text import is_blank


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t", "\u00a0", "\u200b\u200d\ufeff", "\u2800", "\u3164", "\ufe0f", "\x00"]
)
def test_is_blank_invisible_characters_is_true(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["Done.", ".", " \u200bx", "完", "👍\ufe0f", "\u0301", "\ud800", "\U000e0041."])
def test_is_blank_text_with_visible_character_is_false(text: str) -> None:
    assert not is_blank(text)


def test_is_blank_is_true_for_white_space_and_false_for_letters() -> None:
    spaces = [chr(code) for code in range(0x110000) if chr(code).isspace()]
    letters = [chr(code) for code in range(0x30000) if unicodedata.category(chr(code)) in ("Ll", "Lu", "Nd", "Po")]
    assert all(is_blank(character) for character in spaces)
    assert not any(is_blank(character) for character in letters)
