"""Text in forms and query strings."""


def clean_text(text: str, longest: int | None = None) -> str:
    """Return the text without NUL, which no column accepts, without outer blanks, and cut to `longest` characters."""
    return text.replace("\0", "").strip()[:longest]
