class Trouble(Exception):
    """Why a feed cannot be read: what was expected, what was found, and what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
