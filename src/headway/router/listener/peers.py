"""Peers: networks that the other end of a connection may be in."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from headway.errors import ConfigError

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class Peers:
    """Only the address of the connection counts, never a header. An IPv4 address that came in over IPv6 is taken as what it is."""

    def __init__(self, networks: Sequence[Network] = ()) -> None:
        self._networks = tuple(networks)
        self.hold = lru_cache(maxsize=1024)(self._hold) if networks else _nobody

    def _hold(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def _nobody(peer: str) -> bool:
    return False


def compile_peers(networks: Sequence[str], param: str) -> Peers:
    """`networks` are addresses or CIDR blocks. Raises ConfigError."""
    found: list[Network] = []
    for text in networks:
        try:
            found.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise ConfigError(
                f"{text[:80]!r} is no network", reason="network_invalid", param=param, fix="Write it as 10.0.0.0/8, ::1/128, or one address."
            ) from None
    return Peers(found)
