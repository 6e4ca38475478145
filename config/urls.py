from django.contrib import admin
from django.urls import include, path, reverse_lazy
from django.views.generic import RedirectView

admin.site.site_header = admin.site.site_title = "ADE"
admin.site.index_title = "Administration"

urlpatterns = [
    path("", RedirectView.as_view(url=reverse_lazy("admin:index")), name="home"),
    path("admin/", admin.site.urls),
    path("documents/", include("documents.urls")),
    path("", include("runs.urls")),
]
