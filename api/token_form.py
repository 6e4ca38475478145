from typing import Any

from django import forms
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from api import grants
from api.grants import Refused
from api.models import ApiToken, Scope
from documents.workspace_admin import UsernameField
from workspaces.models import Workspace


class TokenForm(forms.Form):
    workspace = forms.ModelChoiceField(
        queryset=Workspace.objects.none(), help_text="The only workspace that the token gives access to."
    )
    name = forms.CharField(
        max_length=grants.LONGEST_NAME,
        help_text="What the token is for. Histories show this name.",
        widget=forms.TextInput(attrs={"class": "vTextField", "autofocus": True}),
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.label) for scope in Scope if scope != Scope.READ],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Every token can read. A token never has more permissions than its owner has at that time.",
    )
    expires_at = forms.DateTimeField(
        label="expires (UTC)",
        required=False,
        help_text="YYYY-MM-DD or YYYY-MM-DD HH:MM. Empty: the token does not expire.",
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.POST if request.method == "POST" else None)
        assert isinstance(request.user, AbstractUser)
        self.user = request.user
        workspace = self.fields["workspace"]
        assert isinstance(workspace, forms.ModelChoiceField)
        workspace.queryset = Workspace.objects.for_user(request.user).order_by("name")
        if request.user.is_superuser:
            self.fields["person"] = UsernameField(
                required=False, help_text="User name of the token's owner. Empty: you."
            )

    def create(self) -> tuple[ApiToken, str] | None:
        """Create the token and return it with its secret. If it can't be created, return None and add the error to the
        form.
        """
        if not self.is_valid():
            return None
        data: dict[str, Any] = self.cleaned_data
        person = data.get("person") or self.user
        options = {"actor": self.user.username, "expires_at": data["expires_at"]}
        try:
            return grants.make(data["workspace"], person, data["name"], data["scopes"], **options)
        except Refused as refused:
            self.add_error(refused.field, ValidationError(str(refused)))
        return None
