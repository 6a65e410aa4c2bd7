"""What is said where something cannot be done as it was asked for."""


class InvalidFieldsError(Exception):
    """Plain sentences by the name of the field they belong to, all that is wrong at once."""

    def __init__(self, errors: dict[str, list[str]]) -> None:
        self.errors = errors
        super().__init__(" ".join(sentence for sentences in errors.values() for sentence in sentences))
