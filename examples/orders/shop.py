"""The inventory and the payment service of the shop, as workers; and the whole scenario, which checks itself.

python examples/orders/shop.py
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import postroom

HERE = Path(__file__).parent
ORDERS = (
    '<order id="1" customer="Ann" item="paper" count="3" price="12.00" card="4000"/>',
    '<order id="2" customer="Bob" item="paper" count="90" price="360.00" card="4000"/>',
    '<order id="3" customer="Eve" item="ink" count="2" price="30.00" card="stolen"/>',
)


class Inventory:
    """What is in the warehouse, in a database of its own. A message that comes twice is done once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS goods (item TEXT PRIMARY KEY, count INTEGER NOT NULL)")
            database.execute("CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY, answer TEXT NOT NULL)")

    def fill(self, **goods: int) -> None:
        with closing(sqlite3.connect(self._path)) as database, database:
            database.executemany("INSERT INTO goods VALUES (?, ?)", list(goods.items()))

    def counts(self) -> dict[str, int]:
        with closing(sqlite3.connect(self._path)) as database:
            return dict(database.execute("SELECT item, count FROM goods"))

    def change(self, key: str, item: str, by: int) -> str:
        """The name of the answer. Counts never go below zero."""
        with closing(sqlite3.connect(self._path)) as database, database:
            found = database.execute("SELECT answer FROM done WHERE key = ?", (key,)).fetchone()
            if found:
                return str(found[0])
            there = "UPDATE goods SET count = count + ? WHERE item = ? AND count + ? >= 0"
            changed = database.execute(there, (by, item, by)).rowcount
            answer = "released" if by > 0 else "reserved" if changed else "unavailable"
            database.execute("INSERT INTO done VALUES (?, ?)", (key, answer))
            return answer


def shop(room: postroom.Postroom, inventory: Inventory) -> None:
    """Register the two services. Each answers once, however often its message is given out."""

    def answer(message: postroom.Message, what: str, order: str) -> None:
        body = f'<{what} id="{order}"/>'
        room.send("answers", body, format="xml", cause=message.key, idempotency_key=f"answer to {message.key}")

    @room.worker("stock")
    def stock(message: postroom.LeasedMessage) -> None:
        asked = ElementTree.fromstring(message.body)
        count = int(asked.attrib["count"])
        done = inventory.change(message.key, asked.attrib["item"], count if asked.tag == "release" else -count)
        if done != "released":
            answer(message, done, asked.attrib["id"])

    @room.worker("payments")
    def payments(message: postroom.LeasedMessage) -> None:
        asked = ElementTree.fromstring(message.body)
        answer(message, "declined" if asked.attrib["card"] == "stolen" else "charged", asked.attrib["id"])


def work(room: postroom.Postroom) -> None:
    """Rules and services in turn, until neither has anything to do. In production each is a process of its own."""
    while room.run(until_idle=True) + room.consumers.run(until_idle=True).done:
        pass


def main(folder: Path) -> None:
    inventory = Inventory(folder / "inventory.db")
    inventory.fill(paper=10, ink=5)
    with postroom.open(folder / "shop.db") as room:
        room.load(HERE / "orders.demaq")
        shop(room, inventory)
        for order in ORDERS:
            room.send("orders", order, format="xml")
        work(room)
        for letter in room.peek("letters"):
            print(letter.body)
        assert sorted(letter.body.split('"')[1] for letter in room.peek("letters")) == ["Ann", "Bob", "Eve"]
        assert [ElementTree.fromstring(parcel.body).attrib["id"] for parcel in room.peek("parcels")] == ["1"]
        assert list(room.peek("failures")) == []
        assert inventory.counts() == {"paper": 7, "ink": 5}, "what was reserved for a declined card is back"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
