"""Where the service answers what."""

from django.conf import settings
from django.urls import path

from examples.django_catalogue import views

urlpatterns = [
    path("items/", views.SearchView.as_view()),
    path("items/<str:sku>/", views.ItemView.as_view()),
    path("items/<str:sku>/related/", views.RelatedView.as_view()),
    path("prices/<str:category>/", views.PricesView.as_view()),
    path("health/", views.health),
]
if settings.COLLECT:
    urlpatterns.append(path("debug/collect/", views.collect))
