"""How items, prices and summaries look in answers."""

from typing import Any

from rest_framework import serializers

from examples.django_catalogue.catalogue import Item


class PriceSerializer(serializers.Serializer):
    """A price in one currency."""

    currency = serializers.CharField()
    amount_cents = serializers.IntegerField()
    discount_percent = serializers.IntegerField()
    net_cents = serializers.IntegerField()


class ItemSummarySerializer(serializers.Serializer):
    """An item in a list."""

    sku = serializers.CharField()
    name = serializers.CharField()
    brand = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    available = serializers.IntegerField()
    price = serializers.SerializerMethodField()

    def get_price(self, item: Item) -> dict[str, Any]:
        """Return the price in the currency that was asked for."""
        data: dict[str, Any] = PriceSerializer(item.prices[self.context["currency"]]).data
        return data


class ItemSerializer(serializers.Serializer):
    """An item on a page of its own."""

    sku = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    category = serializers.CharField()
    brand = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    attributes = serializers.DictField(child=serializers.CharField())
    prices = serializers.SerializerMethodField()
    stock = serializers.DictField(child=serializers.IntegerField())
    available = serializers.IntegerField()

    def get_prices(self, item: Item) -> list[dict[str, Any]]:
        """Return the prices in all currencies."""
        data: list[dict[str, Any]] = PriceSerializer(list(item.prices.values()), many=True).data
        return data


class PriceSummarySerializer(serializers.Serializer):
    """The prices of a category."""

    items = serializers.IntegerField()
    lowest_cents = serializers.IntegerField()
    highest_cents = serializers.IntegerField()
    mean_cents = serializers.IntegerField()
