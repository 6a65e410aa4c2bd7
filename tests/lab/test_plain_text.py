"""Text of people and addresses, before it is used."""

from toolbench.lab.plain_text import clean_text


def test_text_that_no_column_takes_is_left_out() -> None:
    assert clean_text(" \0a b\0 ") == "a b"
    assert clean_text("  abcdef", 3) == "abc"
