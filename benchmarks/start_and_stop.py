"""Base class of parts of a benchmark that a `with` block starts and stops."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class StartAndStop(ABC):
    """Starts when its `with` block begins, and stops when the block ends or the start fails."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Start all parts."""

    @abstractmethod
    def stop(self) -> None:
        """Stop all parts that were started."""
