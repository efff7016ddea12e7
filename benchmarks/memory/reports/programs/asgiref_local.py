"""A `Local` keeps a weak reference to each context that it was used in, when that is gone, too."""

import threading

from asgiref.local import Local

active = Local()


def request(number):
    active.language = f"language of {number}"


def tick(number):
    thread = threading.Thread(target=request, args=(number,))
    thread.start()
    thread.join()


PER_SECOND = 200
