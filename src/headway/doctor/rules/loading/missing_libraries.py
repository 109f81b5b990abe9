"""Which package brings a shared library or a Python module that was not found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.doctor.words import Words


@dataclass(frozen=True, slots=True)
class Package:
    """`command` installs what is missing."""

    brings: Words
    command: str


_LIBRARIES: Final[dict[str, Package]] = {
    "libGL.so": Package(
        Words("libGL of Mesa, which OpenCV (cv2) wants", "OpenCV（cv2）需要的 Mesa libGL"),
        "apt-get update && apt-get install -y libgl1   # or, without a display: pip install opencv-python-headless",
    ),
    "libgthread": Package(
        Words("GLib, which OpenCV wants", "OpenCV 需要的 GLib"), "apt-get update && apt-get install -y libglib2.0-0"
    ),
    "libglib": Package(
        Words("GLib, which OpenCV wants", "OpenCV 需要的 GLib"), "apt-get update && apt-get install -y libglib2.0-0"
    ),
    "libSM.so": Package(
        Words("the X11 session library", "X11 会话库"), "apt-get update && apt-get install -y libsm6 libxext6"
    ),
    "libXext": Package(
        Words("the X11 extension library", "X11 扩展库"), "apt-get update && apt-get install -y libxext6"
    ),
    "libXrender": Package(
        Words("the X11 render library", "X11 渲染库"), "apt-get update && apt-get install -y libxrender1"
    ),
    "libsndfile": Package(
        Words("libsndfile, which reads sound", "读取音频的 libsndfile"),
        "apt-get update && apt-get install -y libsndfile1",
    ),
    "libav": Package(Words("the FFmpeg libraries", "FFmpeg 库"), "apt-get update && apt-get install -y ffmpeg"),
    "libnuma": Package(Words("libnuma", "libnuma"), "apt-get update && apt-get install -y libnuma1"),
    "libgomp": Package(
        Words("the OpenMP runtime of GCC", "GCC 的 OpenMP 运行时"), "apt-get update && apt-get install -y libgomp1"
    ),
    "libtbb": Package(Words("Intel TBB", "Intel TBB"), "apt-get update && apt-get install -y libtbb12"),
    "libtcmalloc": Package(Words("tcmalloc", "tcmalloc"), "apt-get update && apt-get install -y libtcmalloc-minimal4"),
    "libmpi": Package(Words("Open MPI", "Open MPI"), "apt-get update && apt-get install -y libopenmpi3"),
    "libopenblas": Package(Words("OpenBLAS", "OpenBLAS"), "apt-get update && apt-get install -y libopenblas0"),
    "libcurl": Package(Words("libcurl", "libcurl"), "apt-get update && apt-get install -y libcurl4"),
    "libibverbs": Package(
        Words("the InfiniBand verbs library", "InfiniBand verbs 库"), "apt-get update && apt-get install -y libibverbs1"
    ),
    "libpython": Package(
        Words("the Python library", "Python 动态库"), "apt-get update && apt-get install -y libpython3-dev"
    ),
}


def package_of(library: str) -> Package | None:
    """The package for `libGL.so.1` and the like, None when it is not in the table."""
    return next((package for start, package in _LIBRARIES.items() if library.startswith(start)), None)
