"""Two network namespaces with a cable between them stand for two hosts; for scripts that run inside `unshare -rn`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

Prefix = Sequence[str]


def run(*words: str) -> None:
    subprocess.run(words, check=True)


@contextmanager
def cabled_hosts() -> Iterator[Mapping[str, Prefix]]:
    """Host -> the words before a command that is to run there. Host a is 10.77.0.1 (`cable_a`), host b 10.77.0.2 (`cable_b`)."""
    other = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()  # it is in its namespace
    hosts: dict[str, Prefix] = {"a": (), "b": ("nsenter", "-t", str(other.pid), "-n")}
    try:
        run("ip", "link", "add", "cable_a", "type", "veth", "peer", "name", "cable_b", "netns", str(other.pid))
        for host, address in (("a", "10.77.0.1/24"), ("b", "10.77.0.2/24")):
            run(*hosts[host], "ip", "link", "set", "lo", "up")
            run(*hosts[host], "ip", "addr", "add", address, "dev", f"cable_{host}")
            run(*hosts[host], "ip", "link", "set", f"cable_{host}", "up")
        yield hosts
    finally:
        other.kill()
        other.wait()
