"""Reads the settings of config/environment.py. Refuses wrong values, and values that contradict each other."""

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from config.environment import KINDS, NEEDED_BY, SETTINGS

# If one of its workers exits with 3, gunicorn stops. With any other code, gunicorn would restart the worker forever.
EXIT_CODE = 3
# The minimum length of SECRET_KEY, and its minimum number of different characters. Anyone who guesses the key can sign
# in as any user.
LEAST_KEY, LEAST_DIFFERENT = 32, 5


class BadEnvironment(Exception):
    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read(source: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    problems: list[str] = []
    for setting in SETTINGS:
        # Not Env.str(), which takes a value that begins with $ for another variable's name. A random key may begin so.
        text = source.get(setting.name, "").strip() or setting.default
        try:
            values[setting.name] = setting.parse(text)
        except ValueError:
            problems.append(f"{setting.name} is {setting.shown(text)!r}; use {setting.kind.allowed}.")
    problems += [] if problems else _contradictions(values)
    if problems:
        raise BadEnvironment(problems)
    return values


def read_or_exit(source: Mapping[str, str]) -> dict[str, Any]:
    try:
        return read(source)
    except BadEnvironment as bad:
        stop(bad.problems)


def stop(problems: list[str]) -> NoReturn:
    lines = "".join(f"  {problem}\n" for problem in problems)
    sys.stderr.write(f"ADE cannot start with these settings:\n{lines}Each setting is explained in .env.example.\n")
    raise SystemExit(EXIT_CODE)


def _contradictions(values: Mapping[str, Any]) -> Iterator[str]:
    key = values["SECRET_KEY"]
    if not values["DEBUG"] and not key:
        yield "SECRET_KEY is ''; with DEBUG=false, use a secret text; 50 random characters are safe."
    elif not values["DEBUG"] and (len(key) < LEAST_KEY or len(set(key)) < LEAST_DIFFERENT):
        yield (
            f"SECRET_KEY is ***; with DEBUG=false, use at least {LEAST_KEY} characters, {LEAST_DIFFERENT} of them "
            "different; 50 random characters are safe."
        )
    if not values["DEBUG"] and "*" in values["ALLOWED_HOSTS"]:
        yield (
            "ALLOWED_HOSTS is '*'; with DEBUG=false, use the host names of ADE, or .example.org for all names below "
            "one. If any name is allowed, strangers can choose where links in answers lead."
        )
    if not values["ADE_ALLOW_FAILPOINTS"]:
        for name in ("ADE_FAILPOINTS", "ADE_TEST_APPS"):
            if values[name]:
                yield f"{name} is {values[name]!r}; leave it empty unless ADE_ALLOW_FAILPOINTS=true."
    for chooser, choice, needed in NEEDED_BY:
        if values[chooser] == choice:
            for name in needed:
                if not values[name]:
                    yield f"{name} is ''; with {chooser}={choice}, use {KINDS[name].allowed}."
    database = values["DATABASE_URL"]
    if database and database["ENGINE"] == "mssql" and importlib.util.find_spec("mssql") is None:
        yield (
            "DATABASE_URL is mssql://…; install the packages of requirements/mssql.txt, or use sqlite:// or "
            "postgres://."
        )
