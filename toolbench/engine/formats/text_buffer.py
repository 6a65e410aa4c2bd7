"""Buffer for the part of a streamed text that is not decoded yet."""


class TextBuffer:
    """A text to which chunks are added at the end while it is read from the beginning.

    Attributes:
        text: the part of the text that is kept.
        at: the index in `text` of the next character to read.
        final: whether no more text follows.
    """

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.final = False
        self._removed_length = 0  # characters that were removed from `text`

    @property
    def position(self) -> int:
        """The position of the next character to read, counted from the beginning of the whole text."""
        return self._removed_length + self.at

    def push(self, chunk: str) -> None:
        """Add a chunk at the end, and remove the text that was read."""
        self._removed_length += self.at
        self.text = self.text[self.at :] + chunk
        self.at = 0

    def take(self, end: int) -> str:
        """Read up to the index `end` and return the text read."""
        taken = self.text[self.at : end]
        self.at = end
        return taken

    def put_back(self, taken: str) -> None:
        """Put the text that was taken last back, so that it is read again."""
        if len(taken) <= self.at:
            self.at -= len(taken)
            return
        self._removed_length += self.at - len(taken)
        self.text = taken + self.text[self.at :]
        self.at = 0
