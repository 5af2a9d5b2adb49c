"""Clients, stations and spheres for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

from postroom.aio.calls import Part, call, long
from postroom.queues.sessions import QueueSession
from postroom.room.client import Client
from postroom.spheres.machine import MachineHandle
from postroom.spheres.sphere import Sphere
from postroom.stations.station import Station


class AsyncClient(Part):
    """A client that publishes and subscribes under a name."""

    connect = call(Client.connect)
    disconnect = call(Client.disconnect)
    publish = call(Client.publish)
    publish_many = call(Client.publish_many)
    receive = long(Client.receive)
    subscribe = call(Client.subscribe)
    subscriptions = call(Client.subscriptions)
    unsubscribe = call(Client.unsubscribe)

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._here.name)

    @asynccontextmanager
    async def present(self) -> AsyncIterator[AsyncClient]:
        """Be connected while the block runs. If its process is killed, the client becomes disconnected."""
        presence = self._here.present()
        await self._threads.run(presence.__enter__)
        try:
            yield self
        finally:
            await self._threads.run(lambda: presence.__exit__(None, None, None))


class AsyncStation(Part):
    """A station: its messages, its mail, its queries."""

    add_to_dossier = call(Station.add_to_dossier)
    copy = call(Station.copy)
    count = call(Station.count)  # type: ignore[arg-type]  # its options could be called self
    create = call(Station.create)  # type: ignore[arg-type]  # its options could be called self
    create_many = call(Station.create_many)
    dossier = call(Station.dossier)
    dossiers = call(Station.dossiers)
    drop_table = call(Station.drop_table)
    get = call(Station.get)
    inventory = call(Station.inventory)
    mail = call(Station.mail)
    messages = call(Station.messages)
    modify = call(Station.modify)  # type: ignore[arg-type]  # its options could be called self
    next = call(Station.next)
    numbered_count = call(Station.numbered_count)  # type: ignore[arg-type]  # its options could be called self
    others = call(Station.others)
    query = long(Station.query)  # type: ignore[arg-type]  # its options could be called self
    remove_from_dossier = call(Station.remove_from_dossier)
    save_table = call(Station.save_table)
    ship = call(Station.ship)
    show = call(Station.show)
    sql = long(Station.sql)
    table = call(Station.table)
    tables = call(Station.tables)
    take_back = call(Station.take_back)

    @property
    def forms(self) -> Any:
        """The forms of its network."""
        return self._here.forms


class AsyncSphere(Part):
    """A transaction over messages and databases: committed at the end of the block, undone if it raises."""

    abort = long(Sphere.abort)
    commit = long(Sphere.commit)
    enlist = call(Sphere.enlist)
    mail = call(Sphere.mail)
    receive = long(Sphere.receive)
    require = call(Sphere.require)
    send = call(Sphere.send)

    @property
    def ended(self) -> bool:
        """Whether its owner has committed or aborted it."""
        return bool(self._here.ended)

    async def state(self) -> str:
        """Its state."""
        return await self._threads.run(lambda: str(self._here.state))

    async def __aenter__(self) -> AsyncSphere:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._threads.run(lambda: self._here.__exit__(kind, error, trace), apart=True)


class AsyncMachine(Part):
    """A state machine."""

    entities = call(MachineHandle.entities)
    move = call(MachineHandle.move)
    start = call(MachineHandle.start)
    state = call(MachineHandle.state)


class AsyncSession(Part):
    """A session: what was received is acknowledged by the next send or receive."""

    close = call(QueueSession.close)
    confirm = call(QueueSession.confirm)
    give_back = call(QueueSession.give_back)
    purge = call(QueueSession.purge)
    receive = long(QueueSession.receive)
    send = call(QueueSession.send)
