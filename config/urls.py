from django.contrib import admin
from django.urls import include, path

from config.api import api
from config.api_docs import api_docs

admin.site.site_header = admin.site.site_title = "ADE"
admin.site.index_title = "Administration"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("documents/", include("documents.urls")),
    path("", include("runs.urls")),
    path("", include("feeds.urls")),
    # Before the API, which has an answer of its own for the root.
    path("", include("console.urls")),
    path("api/docs", api_docs, name="api_docs"),
    path("", api.urls),
]
