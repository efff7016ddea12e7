"""Each model's cache of subclasses has an entry for each other model that was compared with it."""

from pydantic import BaseModel, ConfigDict, create_model


class Base(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)


models = {}


def tick(number):
    kind = type(f"Kind{number}", (), {})
    models[number] = create_model(f"Item{number}", __base__=Base, price=(kind, ...))


PER_SECOND = 15
