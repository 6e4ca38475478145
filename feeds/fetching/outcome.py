from dataclasses import dataclass

# Messages are stored in a row and read by people.
LONGEST_MESSAGE = 500
# Longest quote from a server within a message.
LONGEST_DETAIL = 200


@dataclass(frozen=True)
class FeedResponse:
    # The final URL, after all redirects.
    url: str
    body: bytes
    # As the server sent them, cleaned; "" if missing or not usable.
    content_type: str
    etag: str
    last_modified: str
    # The new address, if the feed was redirected and all redirects were permanent; otherwise "".
    moved_to: str = ""
    # Nothing is new, and `body` is empty.
    unchanged: bool = False


class FetchFailed(Exception):
    """The fetch failed. The message is for people, the code is for programs. `permanent` means that a later attempt
    can't succeed.

    Codes: bad_url, refused_address, refused_redirect, too_many_redirects, unreachable, tls, too_slow, too_large,
    http_status, bad_answer.
    """

    def __init__(self, code: str, message: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message[:LONGEST_MESSAGE])
        self.code = code
        self.permanent = permanent
        # For how many seconds the server asks not to be called.
        self.retry_after = retry_after


def detail(text: object) -> str:
    """Make untrusted text fit for a message: printable and short."""
    return "".join(each if each.isprintable() else " " for each in str(text)).strip()[:LONGEST_DETAIL]


def reason_of(error: BaseException) -> str:
    """Return the reason that the system or OpenSSL gave, without the wrapping of the HTTP client."""
    cause = error.__cause__ or error
    if verification := getattr(cause, "verify_message", ""):
        return detail(verification)
    # OpenSSL's reasons look like WRONG_VERSION_NUMBER.
    if reason := getattr(cause, "reason", ""):
        return detail(reason).replace("_", " ").lower()
    return detail(getattr(cause, "strerror", None) or cause)
