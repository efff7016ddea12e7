"""`--gil-profile`: records the profile of the GIL, and writes it when the process ends."""

from cpythonplus import gil
from cpythonplus._cli import at_exit
from cpythonplus._doctor.gil_profile import recording, writing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def register(program_pid: int, values: "Mapping[str, object]") -> None:
    """Record from now on; values: the option's.

    Raises ValueError if the GIL is not scheduled, and UnsupportedPlatform if frames cannot be read.
    """
    if not gil.active():
        raise ValueError("--gil-profile requires that the GIL is scheduled")
    recording.start()
    told = (program_pid, str(values["file"]))
    at_exit.register(_report, told, "profile of the GIL", at_sigterm=True)


def _report(program_pid: int, file: str) -> None:
    path = at_exit.file_of_this_process(file, program_pid)
    if path is not None:
        at_exit.write_file(path, writing.written(recording.taken(), path))
