"""Text as people type it and as addresses hold it."""


def clean_text(text: str, longest: int | None = None) -> str:
    """Without NUL, which no column takes, and without blanks around it; cut to `longest` characters."""
    return text.replace("\0", "").strip()[:longest]
