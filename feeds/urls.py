from django.urls import path, register_converter
from django.urls.converters import StringConverter

from feeds.briefs import views


class BriefNameConverter(StringConverter):
    regex = views.NAME


register_converter(BriefNameConverter, "brief")

app_name = "feeds"
urlpatterns = [
    path("briefs/", views.briefs, name="briefs"),
    path("briefs/feed.rss", views.rss, name="rss"),
    path("briefs/<brief:name>/", views.brief, name="brief"),
    path("briefs/<brief:name>.txt", views.brief_as_text, name="brief_as_text"),
]
