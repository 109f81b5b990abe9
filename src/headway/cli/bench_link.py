"""`headway bench link`."""

from __future__ import annotations

import json
import socket
import threading

import click

from headway.errors import ConfigError


@click.command("link")
@click.option("--listen", metavar="HOST:PORT", help="Be the other end: answer one measurement, then end.")
@click.option("--connect", metavar="HOST:PORT", help="Measure the way to a host where --listen runs; absent = this host's loopback.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def link_command(listen: str | None, connect: str | None, as_json: bool) -> None:
    """Measure what messages between two hosts take over TCP, as `headway plan --cluster` reckons with it. Stop everything else before you measure."""
    from headway.bench.link_probe import echo, measure_link

    if listen is not None and connect is not None:
        raise ConfigError("give --listen on one host and --connect on the other", param="listen")
    if listen is not None:
        with _bound(_address(listen, "listen")) as listener:
            click.echo(f"waiting on {listener.getsockname()[0]}:{listener.getsockname()[1]}", err=True)
            echo(listener)
        return
    if connect is not None:
        points = measure_link(_address(connect, "connect"))
    else:
        with _bound(("127.0.0.1", 0)) as listener:
            threading.Thread(target=echo, args=(listener,), name="LinkEcho", daemon=True).start()
            points = measure_link(listener.getsockname()[:2])
    _show(points, as_json)


def _show(points: list[tuple[int, float]], as_json: bool) -> None:
    """As lines for the description of a cluster."""
    from headway.capacity.cluster.link import fitted_link

    link = fitted_link([(float(size), seconds) for size, seconds in points], "best", "link")
    measured = [[size, round(seconds, 9)] for size, seconds in points]
    if as_json:
        click.echo(json.dumps({"measured": measured, "latency_seconds": link.latency, "bandwidth": link.bandwidth}))
        return
    click.echo(f"# latency {link.latency * 1e6:.1f} us, {link.bandwidth / 1e9:.2f} GB/s in one direction\nmeasured = {json.dumps(measured)}")


def _bound(address: tuple[str, int]) -> socket.socket:
    try:
        return socket.create_server(address)
    except OSError as error:
        raise ConfigError(f"--listen {address[0]}:{address[1]}: {error.strerror or error}", param="listen") from None


def _address(text: str, param: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"--{param} must be HOST:PORT, found {text!r:.80}", param=param)
    return host.strip("[]"), int(port)
