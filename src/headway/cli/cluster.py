"""`headway cluster up|status|down`: Ray on this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from headway.errors import LaunchError


@click.group("cluster", context_settings={"help_option_names": ["-h", "--help"]})
def cluster_group() -> None:
    """Make this machine a node of a Ray cluster, and see what the cluster has. Needs `pip install "headway[ray]"`."""


@cluster_group.command("up")
@click.option("--address", help="HOST:PORT of a cluster to join; without it this machine becomes the head of a new one.")
@click.option("--host", help="Address of this machine that the others use (default: Ray chooses).")
@click.option("--port", type=click.IntRange(1, 65535), default=6379, show_default=True, help="Port of a new cluster.")
@click.option("--num-cpus", type=click.IntRange(1), help="CPUs that Ray may give away (default: all).")
@click.option("--object-store-memory", type=click.IntRange(78_643_200), help="Bytes of its object store (default: 30 % of the memory).")
@click.option("--timeout", type=click.FloatRange(1, 3600), default=120.0, show_default=True, help="Seconds until it has to be there.")
def up_command(address: str | None, host: str | None, port: int, num_cpus: int | None, object_store_memory: int | None, timeout: float) -> None:
    """Start a head here, or join the cluster at --address. It goes on in the background until `headway cluster down`."""
    from headway.compose.ray_node import RayPlace, key_file, start_node

    node = start_node(RayPlace(address, host, port, num_cpus, object_store_memory), timeout)
    if not node.is_head:
        click.echo(f"This machine is a node of {node.address} (process {node.pid}).")
        return
    click.echo(f"Ray's head runs at {node.address} (process {node.pid}).")
    click.echo(f"On other machines: headway cluster up --address {node.address}")
    if key_file().exists():
        click.echo(f"with HEADWAY_CLUSTER_KEY set to what is in {key_file()}.")


@cluster_group.command("status")
@click.option("--address", help="HOST:PORT of the cluster (default: the one that this machine was brought into).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status_command(address: str | None, as_json: bool) -> None:
    """Nodes and resources of the cluster. Exit status 1 where a node is dead or there is no cluster."""
    from headway.compose.ray_node import running_node
    from headway.compose.ray_nodes import ray_status

    if address is None:
        node = running_node()
        if node is None:
            raise LaunchError("no Ray node was started here", reason="cluster_down", fix="Start one with `headway cluster up`, or give --address.")
        address = node.address
    status = ray_status(address)
    if as_json:
        click.echo(json.dumps(asdict(status), indent=2))
    else:
        alive = sum(node.alive for node in status.nodes)
        click.echo(f"{status.address}: {alive} of {len(status.nodes)} nodes alive, {status.free_cpus:g} CPUs and {status.free_gpus:g} GPUs free")
        for one in status.nodes:
            state = "alive" if one.alive else "dead"
            click.echo(f"  {one.node_id}  {one.address:<15}  {state:<5}  {one.cpus:g} CPUs  {one.gpus:g} GPUs  {one.memory_bytes / 2**30:.1f} GiB")
    sys.exit(0 if all(node.alive for node in status.nodes) else 1)


@cluster_group.command("down")
def down_command() -> None:
    """End the Ray node that `headway cluster up` started here; other Ray processes of this machine go on."""
    from headway.compose.ray_node import stop_node

    node = stop_node()
    click.echo("Nothing to end: no Ray node was started here." if node is None else f"Ended the Ray node of {node.address} (process {node.pid}).")
