"""Receivers of OTLP traces, HTTP and gRPC, that decode with OpenTelemetry's own definitions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """`endpoint` is what --otlp-traces-endpoint takes."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.raw = b""
        self._requests: list[ExportTraceServiceRequest] = []
        self._arrived = threading.Condition()

    def take(self, request: ExportTraceServiceRequest) -> None:
        with self._arrived:
            self._requests.append(request)
            self.raw += request.SerializeToString()
            self._arrived.notify_all()

    @property
    def spans(self) -> list[Span]:
        return [s for r in self._requests for rs in r.resource_spans for ss in rs.scope_spans for s in ss.spans]

    @property
    def scopes(self) -> set[str]:
        return {ss.scope.name for r in self._requests for rs in r.resource_spans for ss in rs.scope_spans}

    def resource(self, name: str) -> Any:
        attributes = self._requests[0].resource_spans[0].resource.attributes
        return next(plain(a.value) for a in attributes if a.key == name)

    def wait(self, count: int, seconds: float = 30) -> list[Span]:
        deadline = time.monotonic() + seconds
        with self._arrived:
            while len(self.spans) < count:
                assert self._arrived.wait(deadline - time.monotonic()), f"{len(self.spans)} of {count} spans"
        return self.spans


def plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return [plain(v) for v in value.array_value.values] if kind == "array_value" else getattr(value, kind or "string_value")


def attributes(span: Span) -> dict[str, Any]:
    return {a.key: plain(a.value) for a in span.attributes}


@contextmanager
def http_collector() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
            collector.take(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *args: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.endpoint = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def grpc_collector() -> Iterator[Collector]:
    collector = Collector()

    class Servicer(TraceServiceServicer):
        def Export(self, request: ExportTraceServiceRequest, context: object) -> ExportTraceServiceResponse:
            collector.take(request)
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(Servicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    collector.endpoint = f"grpc://127.0.0.1:{port}"
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait()


COLLECTORS = {"grpc": grpc_collector, "http/protobuf": http_collector}
