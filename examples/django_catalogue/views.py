"""What the service answers. The catalogue is built when this is imported: before any fork."""

from __future__ import annotations

import gc
import os

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from examples.django_catalogue.catalogue import CURRENCIES, Item, build
from examples.django_catalogue.serializers import (
    ItemSerializer,
    ItemSummarySerializer,
    PriceSummarySerializer,
)

RELATED = 8
"""How many related items are shown."""

CATALOGUE = build(settings.ITEMS)

_collected_in: set[int] = set()
"""The process that has answered `collect`, if it was this one: a child does not inherit that."""


class Pages(PageNumberPagination):
    """Twenty items a page; the client may ask for up to a hundred."""

    page_size = 20
    page_size_query_param = "page_size"
    max_page_size = 100


class SearchView(APIView):
    """The items with a tag, the cheapest first: `?tag=...&currency=...&page=...`."""

    def get(self, request: Request) -> Response:
        """Return one page of them."""
        currency = _currency(request)
        tag = request.query_params.get("tag")
        if not tag:
            raise ValidationError({"tag": "is needed"})
        pages = Pages()
        page = pages.paginate_queryset(CATALOGUE.search(tag), request, view=self)
        context = {"currency": currency}
        shown = ItemSummarySerializer(page, many=True, context=context)
        return pages.get_paginated_response(shown.data)


class ItemView(APIView):
    """One item."""

    def get(self, _request: Request, sku: str) -> Response:
        """Return it with everything that is known of it."""
        return Response(ItemSerializer(_item(sku)).data)


class RelatedView(APIView):
    """What goes with an item."""

    def get(self, request: Request, sku: str) -> Response:
        """Return a few items."""
        found = CATALOGUE.related(_item(sku), RELATED)
        context = {"currency": _currency(request)}
        return Response(ItemSummarySerializer(found, many=True, context=context).data)


class PricesView(APIView):
    """The prices of a category."""

    def get(self, _request: Request, category: str) -> Response:
        """Return number, lowest, highest and mean."""
        return Response(PriceSummarySerializer(CATALOGUE.price_summary(category)).data)


def health(_request: HttpRequest) -> JsonResponse:
    """Say that the process answers, and how much it sells."""
    return JsonResponse({"status": "ok", "items": len(CATALOGUE.by_sku)})


@require_POST
def collect(_request: HttpRequest) -> JsonResponse:
    """Run one full garbage collection in this process, unless it has had one; say which it is.

    Only there with CATALOGUE_COLLECT=1. It stands for what happens by itself in a service that
    makes many objects.
    """
    pid = os.getpid()
    if pid not in _collected_in:
        gc.collect()
        _collected_in.add(pid)
    return JsonResponse({"pid": pid})


def _item(sku: str) -> Item:
    try:
        return CATALOGUE.by_sku[sku]
    except KeyError:
        raise NotFound(f"there is no item {sku}") from None


def _currency(request: Request) -> str:
    currency: str = request.query_params.get("currency", CURRENCIES[0])
    if currency not in CURRENCIES:
        raise ValidationError({"currency": f"is one of {', '.join(CURRENCIES)}"})
    return currency
