"""Errors of actions of the lab."""


class InvalidFieldsError(Exception):
    """Invalid input: plain sentences by field, all errors at once."""

    def __init__(self, errors: dict[str, list[str]]) -> None:
        self.errors = errors
        super().__init__(" ".join(sentence for sentences in errors.values() for sentence in sentences))
