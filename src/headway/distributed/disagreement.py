"""Disagreement: one thing in which the nodes of a launch are not alike, and the sentences for each kind of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple


@dataclass(frozen=True, slots=True)
class Disagreement:
    """`subject` is what differs (a package, a flag, files, a pair of addresses); `by_node` what each node has: (label,
    value); `wanted` a value that the sentences name. `refuses`: starting would hang or answer wrongly."""

    reason: str
    refuses: bool
    subject: str
    by_node: tuple[tuple[str, str], ...]
    wanted: str = ""

    @property
    def shown(self) -> str:
        return "; ".join(f"{label}: {value}" for label, value in self.by_node)

    @property
    def sentence(self) -> str:
        """What differs, with the values."""
        return KINDS[self.reason].sentence.format(subject=self.subject, shown=self.shown, wanted=self.wanted)

    @property
    def fix(self) -> str:
        return KINDS[self.reason].fix.format(subject=self.subject, shown=self.shown, wanted=self.wanted)


class Kind(NamedTuple):
    """Templates over `subject`, `shown` and `wanted`."""

    sentence: str
    fix: str


KINDS: Final[Mapping[str, Kind]] = {
    "node_missing": Kind(
        "{subject} did not come to node 0 within {wanted} s",
        "Start it there, with the same --master-addr and --master-port; if it runs, its own message names what it cannot reach.",
    ),
    "node_not_given": Kind("nothing is known of {subject}, although {wanted} nodes start together", "Collect its facts there with `headway doctor dist --collect FILE`."),
    "node_rank_twice": Kind("two launches say that they are {subject}: {shown}", "Give each node a number (--node-rank, RANK) of its own."),
    "key_differs": Kind("{subject} brought another HEADWAY_CLUSTER_KEY", "Set the same HEADWAY_CLUSTER_KEY on every node."),
    "key_not_secret": Kind(
        "HEADWAY_CLUSTER_KEY is not set: whoever reaches {subject} can take part in this launch",
        "Set HEADWAY_CLUSTER_KEY to the same long random text on every node, or keep the port inside a network of your own.",
    ),
    "master_differs": Kind("the nodes look for node 0 at different places: {shown}", "Give every node the same --master-addr and --master-port."),
    "version_differs": Kind("the version of {subject} differs: {shown}", "Use one image or environment on all nodes; {subject} {wanted} is the newest here."),
    "model_missing": Kind("the model is missing on some nodes: {shown}", "Bring its files to each node, or mount one shared folder there."),
    "model_differs": Kind("the files of the model differ in {subject}: {shown}", "Copy the same files to all nodes; give the same --revision."),
    "setting_differs": Kind("{subject} differs: {shown}", "Give every node the same {subject}."),
    "interface_missing": Kind("{subject} names an interface that is not there: {shown}", "Name one that exists on that node, or unset the variable."),
    "interface_down": Kind("{subject} names an interface that is down or has no address: {shown}", "Bring it up (`ip link set dev NAME up`), or name another."),
    "address_not_here": Kind(
        "{subject} is no address of that node: {shown}", "Give an address of that node; on node 0 that is --master-addr, or set VLLM_HOST_IP or GLOO_SOCKET_IFNAME."
    ),
    "master_unresolved": Kind("{subject} has no address there: {shown}", "Give --master-addr as an IP address, or make the name known on every node."),
    "no_route": Kind("{subject} does not exist: {shown}", "Connect that node to the network of node 0 (`ip route get ADDRESS`)."),
    "loopback_between_hosts": Kind(
        "a loopback address cannot be reached from another host: {shown}", "Give --master-addr as an address that the others reach; where a name resolves to 127.x, correct /etc/hosts."
    ),
    "unreachable": Kind(
        "connections between nodes fail: {shown}",
        "Open all TCP ports between the nodes (gloo and NCCL take ports that the system picks, not only {wanted}), or choose the interface that connects them with GLOO_SOCKET_IFNAME.",
    ),
    "clock_differs": Kind("the clocks differ from that of node 0: {shown}", "Keep the clocks together (chrony, ntpd): logs and deadlines are compared across nodes."),
    "shm_small": Kind(
        "/dev/shm is smaller than {wanted}: {shown}", "Start the container with --shm-size=1g or --ipc=host: processes of a node, and NCCL, exchange data there."
    ),
    "cpus_differ": Kind("the nodes have different numbers of CPUs: {shown}", "The slowest node sets the pace; give each the same number, or fewer ranks to the small one."),
    "memory_differs": Kind("the nodes have different amounts of memory: {shown}", "The smallest sets the size of the KV cache; give each the same limit."),
}
