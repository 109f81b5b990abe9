"""Which interface and address a node uses towards the others, and who chose it."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Literal

import psutil

INTERFACE_VARIABLES: Final = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
ADDRESS_VARIABLE: Final = "VLLM_HOST_IP"

Problem = Literal["", "interface_missing", "interface_down", "address_not_here", "master_unresolved", "no_route"]


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface of this machine; `addresses` are IPv4 first, link-local ones left out."""

    name: str
    addresses: tuple[str, ...]
    up: bool


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """`address` is where others reach this node, "" where none could be chosen; `problem` says why it will not work."""

    interface: str
    address: str
    chosen_by: str  # a variable with its value, "the master address", or "the route to ..."
    problem: Problem = ""


def interfaces() -> tuple[Interface, ...]:
    """Those of this machine (of this network namespace)."""
    state = psutil.net_if_stats()
    found = []
    for name, entries in sorted(psutil.net_if_addrs().items()):
        plain = [entry.address.split("%")[0] for entry in entries if entry.family in (socket.AF_INET, socket.AF_INET6)]
        addresses = sorted((a for a in plain if not ip_address(a).is_link_local), key=lambda a: ip_address(a).version)
        found.append(Interface(name, tuple(addresses), state[name].isup if name in state else False))
    return tuple(found)


def node_address(master_addr: str, is_master: bool, environment: Mapping[str, str], here: Sequence[Interface]) -> NodeAddress:
    """VLLM_HOST_IP wins, then GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME; node 0 else uses the master address, which must
    be its own; the others use the address from which the kernel would speak to it (no packet is sent)."""
    if wanted := environment.get(ADDRESS_VARIABLE, "").strip():
        chosen_by = f"{ADDRESS_VARIABLE}={wanted}"
        owner = _owner(wanted, here)
        return NodeAddress(owner.name if owner else "", wanted, chosen_by, "" if owner else "address_not_here")
    for variable in INTERFACE_VARIABLES:
        if wanted := environment.get(variable, "").strip():
            return _by_name(f"{variable}={wanted}", wanted, here)
    target = resolved(master_addr)
    if target is None:
        return NodeAddress("", "", f"the master address {master_addr}", "master_unresolved")
    address = target if is_master else _source_towards(target)
    if address is None:
        return NodeAddress("", "", f"the route to {target}", "no_route")
    owner = _owner(address, here)
    chosen_by = f"the master address {master_addr}" if is_master else f"the route to {target}"
    return NodeAddress(owner.name if owner else "", address, chosen_by, "" if owner else "address_not_here")


def resolved(name: str) -> str | None:
    """The first address of a name, IPv4 before IPv6, None where it has none."""
    try:
        entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return min((str(entry[4][0]) for entry in entries), key=lambda a: ip_address(a.split("%")[0]).version, default=None)


def names_interface(wanted: str, name: str) -> bool:
    """Whether the value of NCCL_SOCKET_IFNAME (or of gloo, which knows exact names only) means `name`: a list of
    prefixes; after "=" of exact names; after "^" of prefixes that are not meant."""
    exact, without = wanted.startswith("="), wanted.startswith("^")
    words = [word for word in wanted.lstrip("=^").split(",") if word]
    met = any(name == word if exact else name.startswith(word) for word in words)
    return not met if without else met


def _by_name(chosen_by: str, wanted: str, here: Sequence[Interface]) -> NodeAddress:
    meant = [one for one in here if names_interface(wanted, one.name)]
    if not wanted.startswith("^"):
        meant = [one for one in meant if one.name == wanted] or meant  # eth1 is not meant to be eth10
    elif usable := [one for one in meant if not all(_is_loopback(a) for a in one.addresses)]:
        meant = usable
    if not meant:
        return NodeAddress("", "", chosen_by, "interface_missing")
    chosen = next((one for one in meant if one.up and one.addresses), meant[0])
    problem: Problem = "" if chosen.up and chosen.addresses else "interface_down"
    return NodeAddress(chosen.name, chosen.addresses[0] if chosen.addresses else "", chosen_by, problem)


def _owner(address: str, here: Sequence[Interface]) -> Interface | None:
    """The interface that has the address; all of 127.0.0.0/8 belongs to the loopback interface."""
    for one in here:
        if address in one.addresses or (_is_loopback(address) and any(_is_loopback(a) for a in one.addresses)):
            return one
    return None


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _source_towards(target: str) -> str | None:
    """A datagram socket that is connected knows its own address; nothing is sent."""
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((target, 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])
