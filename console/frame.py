"""Everything that all pages share: access checks, rendering, and finding rows."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe

from api.audit import record_of
from work.operations.outcomes import DONE, Outcome
from workspaces.models import Workspace

View = Callable[..., HttpResponseBase]
Row = TypeVar("Row", bound=Model)


def page(view: View) -> View:
    """Decorate the view of a read-only page for signed-in users."""
    return require_safe(login_required(view))


def act(view: View) -> View:
    """Decorate the view of an action for signed-in users. The view must itself check the permission for the row."""
    action = login_required(view)

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        if request.method == "POST":
            return action(request, *args, **options)
        # The user has opened the URL directly or with the back button, instead of submitting the form.
        page = render(request, "405.html", {"title": "Use the button on the page"}, status=405)
        page["Allow"] = "POST"
        return page

    return answer


def for_members(view: View) -> View:
    """Decorate a view of what all workspaces share, which only members of a workspace and superusers may see."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        if not (is_superuser(request) or Workspace.objects.for_user(request.user).exists()):
            raise PermissionDenied("Only members of a workspace can see this. You are not a member of any.")
        return view(request, *args, **options)

    return answer


def show(
    request: HttpRequest,
    template: str,
    title: str,
    context: Mapping[str, Any],
    *,
    live: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render a page. `live` is the URL of the stream that reports changes to the page."""
    return render(request, template, {"title": title, "live": live, **context}, status=status)


def person_of(request: HttpRequest) -> AbstractUser:
    assert isinstance(request.user, AbstractUser)
    return request.user


def actor_of(request: HttpRequest) -> str:
    """Return the name of the user for histories."""
    return person_of(request).get_username()


def is_superuser(request: HttpRequest) -> bool:
    return request.user.is_superuser and request.user.is_active


def find(request: HttpRequest, rows: Any, id: int, what: str = "") -> Any:
    """Return a row that the user may see; raise Http404 for any other ID. The manager `rows` must have `for_user`. If
    the request is audited, record the row as its subject.
    """
    row = rows.for_user(request.user).filter(pk=id).first()
    if row is None:
        raise Http404(f"No such {what or 'row'}, or you do not have access to it.")
    if record := record_of(request):
        record.saw(what or row._meta.model_name, row.pk, getattr(row, "workspace_id", None))
    return row


def operates(request: HttpRequest, workspace_id: int) -> bool:
    return Workspace.objects.operated_by(request.user).filter(pk=workspace_id).exists()


def must_operate(request: HttpRequest, workspace_id: int) -> None:
    if not operates(request, workspace_id):
        raise PermissionDenied("You must be an operator of the workspace to do this.")


def must_have(request: HttpRequest, permission: str) -> None:
    """Require a permission that applies to the whole installation. The admin and the API check the same permissions."""
    if not person_of(request).has_perm(permission):
        raise PermissionDenied(f"You need the permission {permission} to do this.")


def back(request: HttpRequest, otherwise: str) -> HttpResponseRedirect:
    """Redirect to the page that had the button, or to `otherwise` if that page is not on this site."""
    url = request.POST.get("back", "")
    is_ours = url_has_allowed_host_and_scheme(url, allowed_hosts={request.get_host()}, require_https=False)
    return HttpResponseRedirect(url if is_ours and url.startswith("/") else otherwise)


def report(request: HttpRequest, outcome: Outcome, message: str) -> None:
    """Show the outcome of an action on the next page."""
    messages.add_message(request, messages.SUCCESS if outcome in DONE else messages.WARNING, message)


def query(parameters: QueryDict, **changes: Any) -> str:
    """Return the current query string with changes, without empty values."""
    merged = {**parameters.dict(), **changes}
    return urlencode({name: value for name, value in merged.items() if value not in (None, "")})
