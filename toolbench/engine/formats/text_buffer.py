"""The part of a growing text that is not decided yet."""


class TextBuffer:
    """`text` from `at` on is still to be read; `final` is true once nothing more comes."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.final = False
        self._before = 0  # characters that have left the tape

    @property
    def place(self) -> int:
        """Where reading stands, counted from the beginning of all that was fed."""
        return self._before + self.at

    def push(self, chunk: str) -> None:
        self._before += self.at
        self.text = self.text[self.at :] + chunk
        self.at = 0

    def take(self, end: int) -> str:
        """What stands before `end`, which is read with that."""
        taken = self.text[self.at : end]
        self.at = end
        return taken

    def put_back(self, taken: str) -> None:
        """Put back what was taken last."""
        if len(taken) <= self.at:
            self.at -= len(taken)
            return
        self._before += self.at - len(taken)
        self.text = taken + self.text[self.at :]
        self.at = 0
