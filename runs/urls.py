from django.urls import path

from runs import views

app_name = "runs"
urlpatterns = [path("artifacts/<int:id>/download/", views.download_artifact, name="download_artifact")]
