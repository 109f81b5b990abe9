"""Where a launch is read from: a command as it is typed, or a file that has it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headway.doctor.collect.launch_files import Launched, launched_by
from headway.errors import DoctorError

_FILE_BYTES: Final = 4 << 20
_PATH_CHARS: Final = 4096


def launch_text(file: Path) -> str:
    """The text of a launch file. Raises DoctorError (`launch_unknown`) when it cannot be read or is too large to be one."""
    try:
        if (size := file.stat().st_size) > _FILE_BYTES:
            raise DoctorError(
                f"{file} has {size} bytes, at most {_FILE_BYTES} are read", reason="launch_unknown", fix="Give the file that starts the server."
            )
        return file.read_text("utf-8", "replace")
    except OSError as error:
        raise DoctorError(f"{file} cannot be read: {error.strerror}", reason="launch_unknown", fix="Give the path of a text file.") from error


def launched(command_or_file: str) -> Launched:
    """Raises DoctorError (`launch_unknown`)."""
    is_command = "\n" in command_or_file or len(command_or_file) > _PATH_CHARS
    path = Path(command_or_file)
    if is_command or not path.exists():
        return launched_by(command_or_file)
    return launched_by(launch_text(path), path.name)
