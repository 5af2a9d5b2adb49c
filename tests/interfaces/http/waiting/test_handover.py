"""Messages are handed over to clients that are still there."""

from __future__ import annotations

import socket
from time import sleep

from tests.interfaces.http.conftest import Served


def test_a_client_that_left_while_it_waited_takes_no_message(here: Served) -> None:
    here.room.queues.create("orders")
    body = b'{"wait": 20}'
    with socket.create_connection(("127.0.0.1", int(here.url.rsplit(":", 1)[1]))) as connection:
        connection.sendall(
            b"POST /queues/orders/receive HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            + here.token.encode()
            + b"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        sleep(0.5)
    sleep(0.3)
    here.room.send("orders", "for someone else")
    sleep(0.3)
    assert here.room.count("orders").queues[0].unprocessed == 1
    with here.client() as client:
        assert client.post("/queues/orders/receive").json()["message"]["body"] == "for someone else"
