from django.urls import path, register_converter

from feeds.briefs import views


class BriefName:
    regex = views.NAME

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(BriefName, "brief")

app_name = "feeds"
urlpatterns = [
    path("briefs/", views.briefs, name="briefs"),
    path("briefs/feed.rss", views.rss, name="rss"),
    path("briefs/<brief:name>/", views.brief, name="brief"),
    path("briefs/<brief:name>.txt", views.brief_as_text, name="brief_as_text"),
]
