"""A process that behaves like a server that loads for a while: `python scripted_process.py PORT [LOADING_ANSWERS [PROBLEM]]`.

With PROBLEM it is a runtime that will never be ready, for that reason.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

loading_answers = int(sys.argv[2]) if len(sys.argv) > 2 else 0
problem = sys.argv[3] if len(sys.argv) > 3 else None


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        global loading_answers
        body = b"{}"
        if loading_answers > 0:
            body = json.dumps({"status": "loading", "stage": "loading", "progress": 1 / loading_answers}).encode()
        if problem is not None:
            body = json.dumps({"status": "degraded", "reason": problem, "models": {"a": {"status": "ready"}, "b": {"status": "failed"}}}).encode()
        self.send_response(503 if loading_answers > 0 or problem is not None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        loading_answers -= 1

    def log_message(self, format: str, *args: object) -> None:
        print("answered", flush=True)


print("listening", flush=True)
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
