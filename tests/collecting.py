"""Programs in which a collection runs code in the midst of an allocation, as it does up to 3.11."""

COLLECTING = """
import gc

def nothing():
    pass

on = False

def callback(phase, info):
    global on
    if on and phase == "start":
        on = False
        try:
            act()
        except RuntimeError as error:
            refused.add(str(error))

gc.callbacks.append(callback)

def while_collecting(call, prepare=nothing):
    global on
    for i in range(200):
        prepare()
        keep = [[] for _ in range(i % 13)]
        gc.set_threshold(1 + i % 5)
        on = True
        try:
            call()
        except RuntimeError as error:
            refused.add(str(error))
        on = False
        gc.set_threshold(700)

refused = set()
"""

RELEASING = """
def act():
    if lock._is_owned():
        lock.release()

def prepare():
    lock.acquire()
    held.extend((i, -i) for i in range(5000))  # no tuple is left to be used again

held = []
while_collecting(lock._release_save, prepare)
"""
