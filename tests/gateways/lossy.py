"""A proxy that loses, doubles and delays requests and answers, as a bad network does."""

from __future__ import annotations

import http.client
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep

Answer = tuple[int, list[tuple[str, str]], bytes]
_OWN = ("host", "connection", "content-length")


class Line:
    """What a line does to requests; the rates are of each way."""

    def __init__(self, port: int, rate: float, seed: int) -> None:
        self.target = port
        self.rate = rate
        self.port = 0
        self.lost = self.doubled = self.delayed = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def _falls(self) -> bool:
        with self._lock:
            return self._random.random() < self.rate

    def carried(self, path: str, headers: dict[str, str], body: bytes) -> Answer | None:
        """What comes back; None if something was lost."""
        if self._falls():
            self.lost += 1
            return None
        if self._falls():
            self.delayed += 1
            sleep(self._random.random() * 0.05)
        if self._falls():
            self.doubled += 1
            late = threading.Thread(target=self._again, args=(path, headers, body), daemon=True)
            late.start()
        answer = self._ask(path, headers, body)
        if answer is None or self._falls():
            self.lost += 1
            return None
        return answer

    def _again(self, path: str, headers: dict[str, str], body: bytes) -> None:
        sleep(self._random.random() * 0.3)
        self._ask(path, headers, body)

    def _ask(self, path: str, headers: dict[str, str], body: bytes) -> Answer | None:
        connection = http.client.HTTPConnection("127.0.0.1", self.target, timeout=20)
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


def _handler(line: Line) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {
                k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "content-length")
            }
            answer = line.carried(self.path, headers, body)
            self.close_connection = True
            if answer is None:
                return  # the connection is closed without an answer
            status, said, body = answer
            self.send_response(status)
            for name, value in said:
                if name.lower() not in ("content-length", "connection", "date", "server", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests are silent."""

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is no error here."""


@contextmanager
def lossy(port: int, rate: float = 0.3, seed: int = 1) -> Iterator[Line]:
    line = Line(port, rate, seed)
    server = _Server(("127.0.0.1", 0), _handler(line))
    line.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield line
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
