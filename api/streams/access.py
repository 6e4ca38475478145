"""Rechecks, while a stream is open, whether its caller may still see the data."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest

from api.callers import Caller
from api.models import ApiToken

# A function that takes a user and returns the rows of the stream's subject that this user can see.
Rows = Callable[[Any], Any]


@dataclass(frozen=True)
class Access:
    caller: Caller
    session_key: str | None
    rows: Rows

    @classmethod
    def of(cls, request: HttpRequest, caller: Caller, rows: Rows) -> "Access":
        return cls(caller, None if caller.token else request.session.session_key, rows)

    def is_still_there(self) -> bool:
        caller: Caller | None = None
        if self.caller.token:
            rows = ApiToken.objects.usable().with_roles().filter(pk=self.caller.token.pk).select_related("user")
            token = rows.first()
            if token and token.role_now:
                caller = Caller(token.user, token)
        else:
            # `get_user` returns no user if the session has ended by a sign-out or a change of the password.
            request = HttpRequest()
            request.session = import_module(settings.SESSION_ENGINE).SessionStore(self.session_key)
            person = get_user(request)
            if isinstance(person, AbstractUser) and person.is_active:
                caller = Caller(person)
        return caller is not None and self.rows(caller.user).exists()
