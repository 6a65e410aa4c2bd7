"""JSON values that users enter: characters that cannot be stored."""

import pytest

from toolbench.lab.library.values import check_characters


@pytest.mark.parametrize("text", ["a\x00b", "\\\x00", "a\ud800b"])
def test_check_characters_refuses_text_that_cannot_be_stored(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be stored"):
        check_characters({"note": [text]})


@pytest.mark.parametrize("text", [r"the escape \u0000", r"\\u0000", "\U0001f600"])
def test_check_characters_accepts_text_about_an_escape(text: str) -> None:
    check_characters({"note": [text]})
