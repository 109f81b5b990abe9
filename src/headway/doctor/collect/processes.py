"""Servers that run on this machine, ours or anybody's, as the process table shows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import psutil

from headway.doctor.collect.network import Address, is_here

_SERVERS: Final = (
    ("vllm-srun", re.compile(r"(?:^|/)vllm-srun$|^headway\.cli\.srun$")),
    ("vllm-sr", re.compile(r"(?:^|/)vllm-sr$|^headway\.cli\.sr$")),
    ("headway", re.compile(r"(?:^|/)headway$|^headway\.cli(?:\.main)?$")),
    ("vllm", re.compile(r"(?:^|/)vllm$|^vllm\.entrypoints\.[\w.]+$")),
    ("llama.cpp", re.compile(r"(?:^|/)llama-server$")),
    ("sglang", re.compile(r"^sglang\.launch_server$")),
    ("tensorrt-llm", re.compile(r"(?:^|/)trtllm-serve$")),
)
# subcommands of the first words that are servers; None = the program is one in itself
_SERVING: Final = {"vllm-srun": ("serve",), "vllm-sr": ("serve",), "headway": ("serve",), "vllm": ("serve",)}


_WITH_A_VALUE: Final = ("-X", "-W")  # of Python's own options; after -m comes the module
_LOOKED_AT: Final = 16


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """`program` as in the table. `ports`: TCP ports it or its children listen on."""

    pid: int
    program: str
    argv: tuple[str, ...]
    ports: tuple[int, ...]

    @property
    def command(self) -> str:
        """The command as typed in a shell, without the interpreter."""
        start = _place(self.argv) or 0
        return shlex.join((self.program, *self.argv[start + 1 :]))


def server_processes() -> list[ServerProcess]:
    """Oldest first; a process whose parent is a server of the same program is its worker and not listed."""
    found: dict[int, tuple[psutil.Process, str, tuple[str, ...]]] = {}
    for process in psutil.process_iter():
        try:
            argv = tuple(process.cmdline())
        except psutil.Error:
            continue
        if program := running_program(argv):
            found[process.pid] = (process, program, argv)
    servers: list[ServerProcess] = []
    for pid, (process, program, argv) in sorted(found.items()):
        try:
            parents = {parent.pid for parent in process.parents()}
        except psutil.Error:
            continue
        if not any(found[parent][1] == program for parent in parents & set(found)):
            servers.append(ServerProcess(pid, program, argv, tuple(sorted(set(_ports(process))))))
    return servers


def server_at(address: Address) -> ServerProcess | None:
    """The server of this machine that listens on that port, when the host is this machine."""
    if not is_here(address.host):
        return None
    return next((server for server in server_processes() if address.port in server.ports), None)


def running_program(argv: Sequence[str]) -> str:
    """Of a process: the program must be what runs, by itself or in Python. A shell, `timeout` or `grep` with such words is none."""
    words = list(argv)
    if words and re.search(r"(?:^|/)python[\d.]*$", words[0]):
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[2:] if words[0] in _WITH_A_VALUE else words[1:]
    return server_program(words) if words and _program_of(words[0]) else ""


def server_program(words: Sequence[str]) -> str:
    """The program that a command line serves with, "" when it is none of a server. Before it may stand what starts it:
    `exec`, `nohup`, `numactl --membind 0`, `uv run`."""
    place = _place(words)
    return "" if place is None else _program_of(words[place])


def server_words(words: Sequence[str]) -> list[str]:
    """The command from the program on; [] when it is none of a server."""
    place = _place(words)
    return [] if place is None else list(words[place:])


def _place(words: Sequence[str]) -> int | None:
    """Where the program stands, when it is told to serve."""
    for index, word in enumerate(words[:_LOOKED_AT]):
        program = _program_of(word)
        if not program:
            continue
        wanted = _SERVING.get(program)
        rest = [later for later in words[index + 1 :] if not later.startswith("-")]
        if wanted is None or word.endswith("api_server") or (rest and rest[0] in wanted):
            return index
    return None


def _program_of(word: str) -> str:
    return next((program for program, pattern in _SERVERS if pattern.search(word)), "")


def _ports(process: psutil.Process) -> Iterator[int]:
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return
    for member in family:
        try:
            for connection in member.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    yield connection.laddr.port
        except psutil.Error:
            continue
