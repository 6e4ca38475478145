from django.urls import path

from documents import views

app_name = "documents"
urlpatterns = [
    path("search/", views.search, name="search"),
    path("<int:id>/download/", views.download, name="download"),
]
