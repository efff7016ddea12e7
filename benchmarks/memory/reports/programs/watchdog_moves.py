"""A file is renamed; the observer remembers each name that it had."""

from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer

folder = Path(mkdtemp())
names = (folder / f"{'a' * 100}.{number}" for number in count())
files = [next(names)]
files[0].write_text("")
observer = Observer()
observer.schedule(FileSystemEventHandler(), str(folder))
observer.start()


def tick(number):
    files[0] = files[0].rename(next(names))


PER_SECOND = 300
