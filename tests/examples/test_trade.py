"""The paper's scenario with partners: offers, orders and invoices between two rooms, and a letter when one is dead."""

from __future__ import annotations

from pathlib import Path

from tests.gateways.served import bodies, listening, opened, running, until

import postroom
from postroom.gateways.smtp_server import free_port
from postroom.room import Postroom

FOLDER = Path(__file__).parents[2] / "examples" / "trade"
NEED = '<need id="{}"><item>bolts</item><count>{}</count></need>'


def buying(buyer: Postroom, port: int, mail: int) -> None:
    address = f"http://127.0.0.1:{port}/trade"
    buyer.gateways.add("CapacityRequestPort", "soap", address=address, attempts="3", backoff="0.05")
    buyer.gateways.add(
        "post", "smtp", address=f"smtp://127.0.0.1:{mail}", tls="none", sender="office@buyer.example",
        to="office@supplier.example",
    )  # fmt: skip
    buyer.load(FOLDER / "buyer.demaq")


def test_a_need_becomes_an_offer_an_order_and_an_invoice(tmp_path: Path) -> None:
    with opened(str(tmp_path / "supplier.db")) as supplier, opened(str(tmp_path / "buyer.db")) as buyer:
        supplier.gateways.add("CapacityRequestPort", "soap", path="/trade")
        supplier.load(FOLDER / "supplier.demaq")
        with listening(supplier) as port, running(supplier):
            buying(buyer, port, 9)
            for id, count in (("r1", 7), ("r2", 500), ("r3", 50)):
                buyer.send("needs", NEED.format(id, count), format="xml")
            with running(buyer):
                until(lambda: len(bodies(buyer, "invoices")) == 2)
        invoices = bodies(buyer, "invoices")
        assert [('request="r1"' in each, ">14<" in each) for each in invoices] == [(True, True), (False, False)]
        assert 'request="r3"' in invoices[1]
        assert len([each for each in bodies(supplier, "requests") if "order" in each]) == 2, "r2 costs too much"
        assert bodies(buyer, "networkErrors") == []


def test_a_dead_supplier_gets_a_letter(tmp_path: Path) -> None:
    mail, dead = free_port("127.0.0.1"), free_port("127.0.0.1")
    with postroom.open(tmp_path / "post.db") as post, opened(str(tmp_path / "buyer.db")) as buyer:
        post.gateways.add("box", "smtp", recipient="office@supplier.example")
        (tmp_path / "post.demaq").write_text(
            "create queue mailbox kind incomingGateway mode persistent interface smtp port box"
        )
        post.load(tmp_path / "post.demaq")
        buying(buyer, dead, mail)
        buyer.send("needs", NEED.format("r9", 7), format="xml")
        with post.gateways.mail_server("127.0.0.1", mail), running(buyer):
            until(lambda: bodies(post, "mailbox"))
        (letter,) = bodies(post, "mailbox")
        assert "The supplier does not answer. By mail: r9" in letter
        (error,) = bodies(buyer, "networkErrors")
        assert f"<disconnectedTransport>http://127.0.0.1:{dead}</disconnectedTransport>" in error
