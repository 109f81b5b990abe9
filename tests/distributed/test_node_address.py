"""Which address a node uses, on made-up interfaces; the kernel is asked only for 127.0.0.1."""

from __future__ import annotations

import pytest

from headway.distributed.node_address import Interface, interfaces, names_interface, node_address

HERE = (
    Interface("docker0", ("172.17.0.1",), False),
    Interface("eth0", ("10.0.0.5", "fd00::5"), True),
    Interface("eth1", (), True),
    Interface("eth10", ("10.9.0.5",), True),
    Interface("lo", ("127.0.0.1", "::1"), True),
)


@pytest.mark.parametrize(
    ("environment", "interface", "address", "problem"),
    [
        ({"VLLM_HOST_IP": "10.9.0.5", "GLOO_SOCKET_IFNAME": "eth0"}, "eth10", "10.9.0.5", ""),
        ({"VLLM_HOST_IP": "10.0.0.6"}, "", "10.0.0.6", "address_not_here"),
        ({"GLOO_SOCKET_IFNAME": "eth0", "NCCL_SOCKET_IFNAME": "docker0"}, "eth0", "10.0.0.5", ""),
        ({"NCCL_SOCKET_IFNAME": "eth10"}, "eth10", "10.9.0.5", ""),
        ({"GLOO_SOCKET_IFNAME": "eth1"}, "eth1", "", "interface_down"),
        ({"GLOO_SOCKET_IFNAME": "docker0"}, "docker0", "172.17.0.1", "interface_down"),
        ({"GLOO_SOCKET_IFNAME": "ib0"}, "", "", "interface_missing"),
        ({"NCCL_SOCKET_IFNAME": "^docker,lo"}, "eth0", "10.0.0.5", ""),
        ({"NCCL_SOCKET_IFNAME": "=eth"}, "", "", "interface_missing"),
        ({}, "lo", "127.0.0.1", ""),
    ],
)
def test_who_chooses(environment: dict[str, str], interface: str, address: str, problem: str) -> None:
    chosen = node_address("127.0.0.1", False, environment, HERE)
    assert (chosen.interface, chosen.address, chosen.problem) == (interface, address, problem)


def test_node_zero_must_own_the_master_address() -> None:
    assert node_address("10.0.0.5", True, {}, HERE).problem == ""
    assert node_address("10.0.0.6", True, {}, HERE).problem == "address_not_here"
    assert node_address("no-such-name.invalid", False, {}, HERE).problem == "master_unresolved"


def test_names_of_interfaces() -> None:
    assert names_interface("eth,ib", "ib0")
    assert not names_interface("=eth0", "eth01")
    assert names_interface("^docker", "eth0")
    assert not names_interface("", "eth0")


def test_this_machine_has_a_loopback_interface() -> None:
    assert any("127.0.0.1" in one.addresses and one.up for one in interfaces())
