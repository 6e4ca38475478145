from dataclasses import dataclass

# A message is a row, and is read by people.
LONGEST_MESSAGE = 500
# Of what a server has said, inside of a message.
LONGEST_DETAIL = 200


@dataclass(frozen=True)
class Fetched:
    # The last one, after all redirects.
    url: str
    body: bytes
    # As the server says, cleaned; "" where it says nothing that could be used.
    content_type: str
    etag: str
    last_modified: str
    # Where it lies from now on: what a chain of only permanent redirects has led to, or "".
    moved_to: str = ""
    # The server has nothing new, and `body` is empty.
    unchanged: bool = False


class FetchFailed(Exception):
    """Says in words for people what was expected and what was found. Permanent: no later attempt ends otherwise.

    Codes: bad_url, refused_address, refused_redirect, too_many_redirects, unreachable, tls, too_slow, too_large,
    http_status, bad_answer.
    """

    def __init__(self, code: str, message: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message[:LONGEST_MESSAGE])
        self.code = code
        self.permanent = permanent
        # For how many seconds its server wants to be left alone.
        self.retry_after = retry_after


def detail(text: object) -> str:
    """Of somebody else's words, what can stand in a message."""
    return "".join(each if each.isprintable() else " " for each in str(text)).strip()[:LONGEST_DETAIL]


def reason_of(error: BaseException) -> str:
    """What the machine has said, below what the layers of a client have made of it."""
    cause = error.__cause__ or error
    if verification := getattr(cause, "verify_message", ""):
        return detail(verification)
    # Of OpenSSL: WRONG_VERSION_NUMBER.
    if reason := getattr(cause, "reason", ""):
        return detail(reason).replace("_", " ").lower()
    return detail(getattr(cause, "strerror", None) or cause)
