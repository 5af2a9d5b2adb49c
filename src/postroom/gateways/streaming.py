"""Sources and sinks of streams: folders, Kafka, a socket, a rate.

An operator sets them; flow graphs name them. Queues do not send through them: ``postroom stream`` has Spark read and
write there.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from postroom.gateways.credentials import secret
from postroom.gateways.transport import Delivered, Letter, Setting, Undelivered, choice, names, number, reference
from postroom.limits import STREAM_EVENTS_MAX, STREAM_FILES_MAX
from postroom.store.tables.endpoints import SINK, SOURCE, Endpoint

_HOST = re.compile(r"\[?[A-Za-z0-9_.:-]+?\]?:[0-9]{1,5}\Z")
_SECONDS = 5.0  # to reach a partner


def _folder(text: str) -> str:
    if not Path(text).is_absolute() or ".." in Path(text).parts:
        raise ValueError("the folder has an absolute path, without ..")
    return str(Path(text))


def _hosts(text: str) -> str:
    hosts = names(text)
    if not hosts or not all(map(_HOST.match, hosts)):
        raise ValueError("HOST:PORT, several with commas between them")
    return ",".join(hosts)


class _StreamTransport:
    """Base of the stream transports: they send no messages of queues."""

    def outgoing(self, letter: Letter) -> Delivered:
        raise Undelivered(f"{letter.endpoint.name} takes no messages of queues: streams use it", final=True)

    def close(self) -> None:
        """Does nothing: there is nothing to close."""


class FilesTransport(_StreamTransport):
    name = "files"
    settings = (
        Setting("folder", "an absolute path; spaces name folders below it", _folder),
        Setting("max-files", "how many new files a batch takes from a folder", number(1, STREAM_FILES_MAX, whole=True)),
    )

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        if "folder" not in settings:
            raise ValueError("folder=/PATH is missing")
        return frozenset({SOURCE, SINK})

    def probe(self, endpoint: Endpoint) -> str:
        folder = Path(endpoint.settings["folder"])
        if not folder.is_dir():
            raise Undelivered(f"there is no folder {folder}", disconnected=str(folder))
        able = [word for word, mode in (("read", os.R_OK | os.X_OK), ("written", os.W_OK)) if os.access(folder, mode)]
        if not able:
            raise Undelivered(f"{folder} can neither be read nor written", disconnected=str(folder))
        return f"{folder} can be {' and '.join(able)}"


class KafkaTransport(_StreamTransport):
    name = "kafka"
    settings = (
        Setting("brokers", "HOST:PORT, several with commas between them", _hosts),
        Setting("starting", "where a new stream begins: earliest or latest", choice("earliest", "latest")),
        Setting("max-events", "how many events a batch takes", number(1, STREAM_EVENTS_MAX, whole=True)),
        Setting("options", "lines NAME=VALUE of Kafka's own settings, as env:NAME or file:/PATH", reference),
    )

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        if "brokers" not in settings:
            raise ValueError("brokers=HOST:PORT is missing")
        return frozenset({SOURCE, SINK})

    def probe(self, endpoint: Endpoint) -> str:
        if "options" in endpoint.settings:
            secret(endpoint.settings["options"])
        brokers = str(endpoint.settings["brokers"]).split(",")
        for broker in brokers:
            _connect(*broker.rsplit(":", 1))
        return f"{len(brokers)} broker(s) can be reached"


class SocketTransport(_StreamTransport):
    name = "socket"
    settings = (Setting("address", "HOST:PORT of a server that writes lines", _hosts),)

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        if "," in settings.get("address", ","):
            raise ValueError("address=HOST:PORT is missing, one of them")
        return frozenset({SOURCE})

    def probe(self, endpoint: Endpoint) -> str:
        _connect(*str(endpoint.settings["address"]).rsplit(":", 1))
        return f"{endpoint.settings['address']} can be reached"


class RateTransport(_StreamTransport):
    name = "rate"
    settings = (Setting("events", "how many events come in a second", number(1, STREAM_EVENTS_MAX, whole=True)),)

    def check(self, settings: Mapping[str, Any]) -> frozenset[str]:
        return frozenset({SOURCE})

    def probe(self, endpoint: Endpoint) -> str:
        return f"{endpoint.settings.get('events', 1)} event(s) in a second"


def _connect(host: str, port: str) -> None:
    try:
        with closing(socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS)):
            return
    except (OSError, OverflowError) as error:
        raise Undelivered(f"{host}:{port}: {error}", disconnected=f"{host}:{port}") from None
