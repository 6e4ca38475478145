class Trouble(Exception):
    """The feed cannot be read. The message says what is wrong and what to do about it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
