from django.urls import path, re_path

from feeds.briefs import views

app_name = "feeds"
urlpatterns = [
    path("briefs/", views.briefs, name="briefs"),
    path("briefs/feed.rss", views.rss, name="rss"),
    re_path(rf"^briefs/(?P<name>{views.NAME})/\Z", views.brief, name="brief"),
    re_path(rf"^briefs/(?P<name>{views.NAME})\.txt\Z", views.brief_as_text, name="brief_as_text"),
]
