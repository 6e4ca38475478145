"""The types of settings: each defines which values it allows and how they are parsed."""

import ipaddress
import re
import zoneinfo
from base64 import b64decode
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import environ

DATABASE_SCHEMES = ("sqlite", "postgres", "postgresql", "mssql")
# The options of an mssql:// URL, as Microsoft's driver names them.
SQL_SERVER_OPTIONS = frozenset({"Encrypt", "TrustServerCertificate", "HostnameInCertificate", "ServerCertificate"})
YES = {"true", "yes", "on", "1"}
NO = {"false", "no", "off", "0"}
OFF = "off"


def either(words: tuple[str, ...]) -> str:
    """Join the words with commas, and the last one with "or"."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


class Kind(Protocol):
    @property
    def allowed(self) -> str: ...

    def parse(self, text: str) -> Any:
        """Parse a value. Raise ValueError if it is not allowed."""


@dataclass(frozen=True)
class Text:
    allowed: str = "any text"

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True)
class Pattern:
    pattern: str
    allowed: str

    def parse(self, text: str) -> str:
        if re.fullmatch(self.pattern, text) is None:
            raise ValueError
        return text


NAME = Pattern(r"[A-Za-z0-9._-]{1,64}", "at most 64 letters, digits, dots, dashes and underscores")
AZURE_CONTAINER = Pattern(
    r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*", "3 to 63 lower-case letters, digits and single dashes between them"
)
# Keys are sent in a header, which allows no other characters.
KEY = Pattern(r"[!-~]{1,1000}", "a key as the service shows it, without spaces")


@dataclass(frozen=True)
class Whole:
    least: int
    most: int

    @property
    def allowed(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    def parse(self, text: str) -> int:
        number: int = environ.Env.parse_value(text, int)
        if not self.least <= number <= self.most:
            raise ValueError
        return number


@dataclass(frozen=True)
class Days:
    """A number of days. None means forever."""

    most: int = 36_500

    @property
    def allowed(self) -> str:
        return f"a number of days from 1 to {self.most:_}, or off".replace("_", "")

    def parse(self, text: str) -> int | None:
        return None if text.lower() == OFF else Whole(1, self.most).parse(text)


@dataclass(frozen=True)
class DaysByStatus:
    """Days per status. Rows with a status that is not named are kept forever."""

    statuses: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return f"STATUS=DAYS pairs separated by commas, where STATUS is {either(self.statuses)}; or off"

    def parse(self, text: str) -> dict[str, int]:
        if text.lower() == OFF:
            return {}
        pairs = [word.partition("=") for word in Words().parse(text)]
        days = {status.strip(): Whole(1, Days.most).parse(number) for status, _, number in pairs}
        if len(days) < len(pairs) or not set(days) <= set(self.statuses):
            raise ValueError
        return days


@dataclass(frozen=True)
class Flag:
    allowed: str = "true or false"

    # Not parsed by environ, which reads every unknown word as false: a mistyped value of DEBUG would go unnoticed.
    def parse(self, text: str) -> bool:
        if text.lower() not in YES | NO:
            raise ValueError
        return text.lower() in YES


@dataclass(frozen=True)
class OneOf:
    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return either(self.words)

    def parse(self, text: str) -> str:
        if text not in self.words:
            raise ValueError
        return text


@dataclass(frozen=True)
class Words:
    allowed: str = "words separated by commas"

    def parse(self, text: str) -> list[str]:
        words: list[str] = environ.Env.parse_value(text, list)
        return [word.strip() for word in words if word.strip()]


@dataclass(frozen=True)
class Networks:
    allowed: str = "networks such as 10.1.0.0/16 or fd00::/8, separated by commas"

    def parse(self, text: str) -> list[str]:
        return [str(ipaddress.ip_network(word)) for word in Words().parse(text)]


@dataclass(frozen=True)
class Zone:
    allowed: str = "a time zone such as UTC or Europe/Berlin"

    def parse(self, text: str) -> str:
        try:
            return zoneinfo.ZoneInfo(text).key
        # For a folder of zones such as Europe, ZoneInfo raises either error, depending on the source of the zone data.
        except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
            raise ValueError from error


@dataclass(frozen=True)
class DatabaseUrl:
    allowed: str = (
        "sqlite:///FILE, postgres://USER:PASSWORD@HOST:PORT/NAME, mssql://USER:PASSWORD@HOST:PORT/NAME or "
        "mssql://USER:PASSWORD@HOST:PORT/NAME?TrustServerCertificate=yes (docs/sqlserver.md has its other options)"
    )

    def parse(self, text: str) -> dict[str, Any]:
        parts = urlsplit(text)
        # In sqlite://file the file name is where the host should be, and environ would silently use another file.
        if parts.scheme not in DATABASE_SCHEMES or (parts.scheme == "sqlite" and parts.netloc):
            raise ValueError
        config: dict[str, Any] = environ.Env.db_url_config(text)
        if config["NAME"] in ("", ":memory:"):
            raise ValueError
        if config["ENGINE"] == "mssql" and not config.get("OPTIONS", {}).keys() <= SQL_SERVER_OPTIONS:
            raise ValueError
        return config


@dataclass(frozen=True)
class AzureConnection:
    allowed: str = "AccountName=NAME;AccountKey=KEY and the other parts that the Azure portal shows, in one line"

    def parse(self, text: str) -> str:
        parts = dict(part.split("=", 1) for part in text.rstrip(";").split(";"))
        # ADE signs links with the account key. A shared access signature cannot be used instead: it cannot sign.
        if not parts.get("AccountName") or not b64decode(parts.get("AccountKey", ""), validate=True):
            raise ValueError
        endpoint = urlsplit(parts.get("BlobEndpoint", "https://default"))
        if endpoint.scheme not in ("http", "https") or not endpoint.hostname or endpoint.query:
            raise ValueError
        return text


@dataclass(frozen=True)
class Url:
    allowed: str = "https://HOST or http://HOST, with a port and a path if needed, and no password"

    def parse(self, text: str) -> str:
        parts = urlsplit(text)
        known = parts.scheme in ("https", "http") and parts.hostname and not re.search(r"[\s@?#]", text)
        # `parts.port` raises ValueError if the port is invalid.
        if not known or parts.port == 0:
            raise ValueError
        return text.rstrip("/")


@dataclass(frozen=True)
class Setting:
    name: str
    kind: Kind
    # A text, so that the default is parsed exactly like an operator's value.
    default: str
    help: str
    secret: bool = False

    def parse(self, text: str) -> Any:
        """Parse a value, which may be empty. Raise ValueError if it is not allowed."""
        if text:
            return self.kind.parse(text)
        if isinstance(self.kind, Text):
            return ""
        return [] if isinstance(self.kind, Words | Networks) else None

    def shown(self, text: str) -> str:
        """Return the value as a message may show it, without secrets."""
        if isinstance(self.kind, Url | DatabaseUrl):
            # Hide only the password of a URL, because the rest helps to find the mistake.
            return re.sub(r"(://[^:/?#@]*):.*@", r"\1:***@", text)
        return "***" if self.secret else text
