"""A RabbitMQ of our own for a benchmark: its files in a folder, its ports on loopback, ended with the benchmark."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

START_SECONDS = 180
#: Debian's command on the PATH changes to a user of its own, who may not write into our folder; this is what it runs.
_DEBIAN = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_MISSING = "is not installed (apt-get install rabbitmq-server)"


class Rabbit(NamedTuple):
    """A running broker that speaks STOMP (guest, guest), or why there is none."""

    port: int
    pid: int
    why: str = ""

    def __bool__(self) -> bool:
        return not self.why


@contextmanager
def rabbit(folder: Path) -> Iterator[Rabbit]:
    """Start a broker if it is installed, and end it."""
    if shutil.which("rabbitmq-server") is None:
        yield Rabbit(0, 0, _MISSING)
        return
    stomp, distribution, epmd = free_ports(3)
    folder.mkdir()
    (folder / "rabbitmq.conf").write_text(f"listeners.tcp = none\nstomp.listeners.tcp.1 = 127.0.0.1:{stomp}\n")
    (folder / "enabled_plugins").write_text("[rabbitmq_stomp].\n")
    environment = {
        **os.environ,
        "HOME": str(folder),  # the cookie
        "RABBITMQ_NODENAME": f"bench{stomp}@localhost",
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "ERL_EPMD_PORT": str(epmd),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    command = str(_DEBIAN if _DEBIAN.exists() else "rabbitmq-server")
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen([command], env=environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
        try:
            if _listens(child, stomp):
                yield Rabbit(stomp, int((folder / "pid").read_text()))
            else:
                last = (folder / "said").read_text(errors="replace").strip().splitlines()[-1:]
                yield Rabbit(0, 0, f"does not start: {' '.join(last) or 'it says nothing'}")
        finally:
            child.terminate()
            child.wait()
            if names := shutil.which("epmd"):  # the broker has left it behind
                subprocess.run([names, "-port", str(epmd), "-kill"], capture_output=True, check=False)


def free_ports(several: int) -> list[int]:
    """Ports of loopback that nobody uses."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(several)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _listens(child: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it takes connections, within the time that it has to start."""
    end = monotonic() + START_SECONDS
    while child.poll() is None and monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return True
        except OSError:
            sleep(0.2)
    return False
