"""Text of people and addresses, before it is used."""

from toolbench.lab.plain_text import plain


def test_text_that_no_column_takes_is_left_out() -> None:
    assert plain(" \0a b\0 ") == "a b"
    assert plain("  abcdef", 3) == "abc"
