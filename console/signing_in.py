"""Pages for signing in and changing the password. The admin's own sign-in page accepts only staff."""

from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeDoneView, PasswordChangeView
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import reverse_lazy


class SignIn(LoginView):
    template_name = "console/sign_in.html"
    redirect_authenticated_user = True
    extra_context = {"title": "Sign in"}


class OwnPasswordForm(PasswordChangeForm):
    """Counts a wrong old password as a failed sign-in, so that the holder of a stolen session cannot guess the
    password.
    """

    def __init__(self, user: User, *args: Any, request: HttpRequest, **options: Any) -> None:
        super().__init__(user, *args, **options)
        self._request = request

    def clean_old_password(self) -> str:
        old_password: str = self.cleaned_data["old_password"]
        if authenticate(self._request, username=self.user.get_username(), password=old_password) is None:
            raise ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return old_password


class ChangePassword(PasswordChangeView):
    """Changes the password. This ends all other sessions of the user, because a session contains a hash of the
    password.
    """

    template_name = "console/password.html"
    title = "Change password"
    form_class = OwnPasswordForm
    success_url = reverse_lazy("console:password_changed")

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"request": self.request}


sign_in = SignIn.as_view()
sign_out = LogoutView.as_view(next_page="console:sign_in")
change_password = ChangePassword.as_view()
password_changed = PasswordChangeDoneView.as_view(
    template_name="console/password_changed.html", title="Password changed"
)
