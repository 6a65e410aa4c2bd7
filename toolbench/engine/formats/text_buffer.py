"""Buffer for the part of a streamed text that is not decoded yet."""


class TextBuffer:
    """A text to which chunks are added at the end while it is read from the beginning.

    Attributes:
        text: the unread part of the text so far, after the characters that were read since the last `push`.
        index: the index in `text` of the next character to read.
        final: whether `text` reaches the end of the whole text.
    """

    def __init__(self) -> None:
        self.text = ""
        self.index = 0
        self.final = False
        self._removed_length = 0  # characters that were removed from `text`

    @property
    def position(self) -> int:
        """The position of the next character to read, counted from the beginning of the whole text."""
        return self._removed_length + self.index

    def push(self, chunk: str) -> None:
        """Add a chunk at the end, and remove the text that was read."""
        self._removed_length += self.index
        self.text = self.text[self.index :] + chunk
        self.index = 0

    def take(self, end: int) -> str:
        """Read up to the index `end` and return the text read."""
        taken_text = self.text[self.index : end]
        self.index = end
        return taken_text

    def put_back(self, taken_text: str) -> None:
        """Put back the last characters that were read, so that they are read again.

        Args:
            taken_text: the text before the next character to read; it may come from several calls of `take`.
        """
        if len(taken_text) <= self.index:
            self.index -= len(taken_text)
            return
        self._removed_length += self.index - len(taken_text)
        self.text = taken_text + self.text[self.index :]
        self.index = 0
