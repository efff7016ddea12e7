"""A schema that is made at run time stays in the registry of classes."""

import marshmallow


def tick(number):
    marshmallow.Schema.from_dict({"name": marshmallow.fields.Str()}, name=f"Order{number % 7}")
    type(f"Form{number}", (marshmallow.Schema,), {"number": marshmallow.fields.Int()})


PER_SECOND = 200
