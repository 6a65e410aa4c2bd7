"""An error class and messages that several packages share."""

NOT_FOUND = "There is no such thing here; it may have been deleted."
UNKNOWN_BUTTON = "This button is not known; reload the page. Nothing was changed."


class InvalidFieldsError(Exception):
    """Raised for invalid input.

    Attributes:
        errors: by field name, a sentence for the user for each error of the field.
    """

    def __init__(self, errors: dict[str, list[str]]) -> None:
        self.errors = errors
        super().__init__(" ".join(sentence for sentences in errors.values() for sentence in sentences))
