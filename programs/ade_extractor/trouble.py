"""Holds the errors for documents that cannot be read."""

from collections.abc import Iterator
from contextlib import contextmanager

# A message is stored in a row and shown to people.
LONGEST_DETAIL = 300


class Trouble(Exception):
    """The document cannot be read, and trying the same file again would fail too. The message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def malformed(
    what: str, problem: str, advice: str = "Open it with the program that made it and save it again."
) -> Trouble:
    return Trouble("malformed", f"{what} cannot be read: {problem}. {advice}")


def too_large(what: str, problem: str, advice: str = "Split the document.") -> Trouble:
    return Trouble("too_large", f"{what} is too large: {problem}. {advice}")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Wrap calls of a library, so that whatever it raises is reported as a problem of the file."""
    try:
        yield
    except (Trouble, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    # Panics of Rust libraries are not subclasses of Exception.
    except BaseException as error:
        detail = f"{type(error).__name__}: {error}"[:LONGEST_DETAIL]
        raise malformed(what, f"the reader failed ({detail})") from error
