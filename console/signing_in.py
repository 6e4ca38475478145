"""Signing in and out on pages of our own: the admin lets in its staff only, and these pages are for all members."""

from typing import Any

from django.contrib.auth.views import LoginView, LogoutView

from work import clock


class SignIn(LoginView):
    template_name = "console/sign_in.html"
    redirect_authenticated_user = True

    def get_context_data(self, **named: Any) -> dict[str, Any]:
        around = {"title": "Sign in", "as_of": clock.now(), "here": self.request.get_full_path()}
        return super().get_context_data(**named) | around


sign_in = SignIn.as_view()
sign_out = LogoutView.as_view(next_page="console:sign_in")
