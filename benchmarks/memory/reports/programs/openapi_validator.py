"""A cache of a method keeps each validator, and with it the schema."""

from openapi_spec_validator import validate


def tick(number):
    info = {"title": "Shop", "version": "1.0.0"}
    validate({"openapi": "3.0.0", "info": info, "paths": {}, "x-text": f"x{number}" * 1000})


PER_SECOND = 30
