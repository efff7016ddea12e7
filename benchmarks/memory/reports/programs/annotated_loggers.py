"""Each function that is decorated leaves a logger behind, which `logging` never gives up."""

import logging

from annotated_logger import AnnotatedLogger

annotated = AnnotatedLogger(name="shop")
logging.disable(logging.CRITICAL)


def tick(number):
    def order(annotated_logger):
        annotated_logger.info("order %d", number)

    annotated.annotate_logs()(order)()


PER_SECOND = 60
