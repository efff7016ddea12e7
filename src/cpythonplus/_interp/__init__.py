"""What is known of the interpreter's private structures, and whether it holds here."""

from cpythonplus._interp.facts import Fact, facts
from cpythonplus._interp.losses import LOSSES, Loss, losses, sentences, walk_losses

__all__ = ["LOSSES", "Fact", "Loss", "facts", "losses", "sentences", "walk_losses"]
