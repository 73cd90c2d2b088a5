"""What is closed when its block ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

Itself = TypeVar("Itself", bound="Closing")


class Closing(ABC):
    """A context manager that closes itself, however its block ends."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is open; may be called again."""

    def __enter__(self: Itself) -> Itself:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
