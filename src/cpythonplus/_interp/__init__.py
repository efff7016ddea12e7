"""The interpreter's private structures: the assumptions about them, and whether they hold."""

from cpythonplus._interp.facts import Fact, facts
from cpythonplus._interp.losses import LOSSES, Loss, losses, sentences, walk_losses

__all__ = ["LOSSES", "Fact", "Loss", "facts", "losses", "sentences", "walk_losses"]
