"""The standard library's logging, with its handlers and configuration."""

import io
import logging
import logging.config
import logging.handlers
import queue

from survey.drivers.support import fails

_logger = logging.getLogger("survey")
_logger.propagate = False
_logger.addHandler(logging.StreamHandler(io.StringIO()))
logging.raiseExceptions = False


class _Unprintable:
    def __str__(self) -> str:
        raise ValueError("refused")


def _handled(handler: logging.Handler, message: object = "message") -> None:
    """One logged exception through a handler of its own."""
    logger = logging.Logger("alone")  # noqa: LOG001
    logger.addHandler(handler)
    try:
        raise ValueError(message)
    except ValueError:
        logger.exception(message)
    handler.close()


def log() -> None:
    _logger.warning("%s and %d", "text", 1, extra={"who": "me"})


def log_with_stack() -> None:
    _logger.warning("text", stack_info=True)


def handlers() -> None:
    handler = logging.handlers.MemoryHandler(2, target=logging.NullHandler())
    logger = logging.Logger("alone")  # noqa: LOG001
    logger.addHandler(handler)
    logger.warning("text")
    handler.close()


def adapter() -> None:
    logging.LoggerAdapter(_logger, {"a": 1}).warning("text")


def dict_config() -> None:
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"f": {"format": "%(message)s"}},
            "handlers": {"h": {"class": "logging.NullHandler", "formatter": "f"}},
            "loggers": {"configured": {"handlers": ["h"]}},
        }
    )


def log_an_exception() -> None:
    _handled(logging.StreamHandler(io.StringIO()))


def exception_in_a_memory_handler() -> None:
    _handled(logging.handlers.MemoryHandler(10, target=logging.NullHandler()))


def exception_in_a_queue() -> None:
    _handled(logging.handlers.QueueHandler(queue.SimpleQueue()))


def exception_through_a_queue_listener() -> None:
    waiting: queue.Queue[object] = queue.Queue()
    listener = logging.handlers.QueueListener(waiting, logging.NullHandler())
    listener.start()
    _handled(logging.handlers.QueueHandler(waiting))
    listener.stop()


def handler_that_fails() -> None:
    closed = io.StringIO()
    closed.close()
    _handled(logging.StreamHandler(closed))


def message_that_cannot_be_formatted() -> None:
    _logger.warning("%d", "text")
    _logger.warning(_Unprintable())


def socket_that_refuses() -> None:
    _handled(logging.handlers.SocketHandler("127.0.0.1", 1))


def wrong_configuration() -> None:
    wrong = {"version": 1, "handlers": {"h": {"class": "no.such.Handler"}}}
    fails(ValueError, lambda: logging.config.dictConfig(wrong))


def wrong_format() -> None:
    fails(ValueError, lambda: logging.Formatter("%(message)z"))


ORDINARY = [log, log_with_stack, handlers, adapter, dict_config]
ERRORS = [
    log_an_exception,
    exception_in_a_memory_handler,
    exception_in_a_queue,
    exception_through_a_queue_listener,
    handler_that_fails,
    message_that_cannot_be_formatted,
    socket_that_refuses,
    wrong_configuration,
    wrong_format,
]
