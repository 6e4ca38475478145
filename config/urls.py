import sys

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import include, path
from django.views.defaults import server_error
from django.views.generic import RedirectView

from api import outages
from config.api import api
from config.api_docs import api_docs

admin.site.site_header = admin.site.site_title = "ADE"
admin.site.index_title = "Administration"

urlpatterns = [
    # Redirect to the console's page, because it limits how often the old password can be guessed.
    path("admin/password_change/", RedirectView.as_view(pattern_name="console:change_password")),
    path("admin/", admin.site.urls),
    path("documents/", include("documents.urls")),
    path("", include("runs.urls")),
    path("", include("feeds.urls")),
    # Must come before the API, which has a route for the root too.
    path("", include("console.urls")),
    path("api/docs", api_docs, name="api_docs"),
    path("", api.urls),
]


def handler500(request: HttpRequest) -> HttpResponseBase:
    """Answer errors that occur outside views: in sessions, sign-ins and form parsing."""
    return outages.answer_to(request, sys.exc_info()[1]) or server_error(request)
