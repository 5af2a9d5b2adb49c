"""Customers of the procurement example: what each of them would send, drawn from a seed.

python customers.py 20                     print the messages of 20 customers
python customers.py 20 room.db requests    send their requests into a room; then orders; then payments
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import postroom

Items = Sequence[tuple[str, object]]

#: Each kind of customer with its share among all.
KINDS = {
    "pays": 8,  # orders, and pays within the time
    "late": 4,  # orders, and pays after the reminder
    "browses": 3,  # asks and does not order
    "restricted": 2,  # asks for what may not be exported
    "large": 2,  # asks for more than the plant can make
    "vague": 1,  # asks for "many": no rule can reckon with that
    "empty": 1,  # orders what is not on the price list: a bill of nothing
}
_GOODS = ("acetone", "ethanol", "toluene", "xylene")


def offer_request(request: str, customer: str, items: Items) -> str:
    return f"<offerRequest>{_ids(request, customer)}{_items(items)}</offerRequest>"


def customer_order(order: object, request: str, customer: str, items: Items) -> str:
    address = f"<address>{customer}, 1 Harbour Street</address>"
    return f"<customerOrder><orderID>{order}</orderID>{_ids(request, customer)}{address}{_items(items)}</customerOrder>"


def payment(request: str, customer: str) -> str:
    return f"<paymentConfirmation>{_ids(request, customer)}</paymentConfirmation>"


def _ids(request: str, customer: str) -> str:
    return f"<requestID>{request}</requestID><customerID>{customer}</customerID>"


def _items(items: Items) -> str:
    return "<items>" + "".join(f'<item name="{name}" quantity="{quantity}"/>' for name, quantity in items) + "</items>"


@dataclass(frozen=True)
class Customer:
    """One conversation: a request, and perhaps an order and its payment."""

    kind: str
    request: str
    order: str | None = None
    payment: str | None = None


def customers(count: int, seed: int = 2007) -> list[Customer]:
    """So many conversations, always the same for a seed. Some are of one customer, who may then have unpaid bills."""
    chance = random.Random(seed)  # noqa: S311 - an example, not a secret
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=count)
    return [_customer(number, kind, chance, count) for number, kind in enumerate(kinds, 1)]


def _customer(number: int, kind: str, chance: random.Random, count: int) -> Customer:
    request, customer = f"r{number}", f"c{chance.randint(1, max(1, count // 2))}"
    names = chance.sample(_GOODS, chance.randint(1, 3))
    items: list[tuple[str, object]] = [(name, chance.randint(1, 400)) for name in names]
    if kind == "restricted":
        items.append(("phosgene", 1))
    elif kind == "large":
        items.append(("ethanol", 5_000))
    elif kind == "vague":
        items.append(("toluene", "many"))
    elif kind == "empty":
        items = [("aether", 3)]
    asked = offer_request(request, customer, items)
    if kind not in ("pays", "late", "empty"):
        return Customer(kind, asked)
    paid = None if kind == "empty" else payment(request, customer)
    return Customer(kind, asked, customer_order(number, request, customer, items), paid)


def main(words: Sequence[str]) -> None:
    some = customers(int(words[0]) if words else 10)
    if len(words) < 2:
        for customer in some:
            print(customer.kind, *filter(None, (customer.request, customer.order, customer.payment)), sep="\n  ")
        return
    what = words[2] if len(words) > 2 else "requests"
    bodies = [{"requests": each.request, "orders": each.order, "payments": each.payment}[what] for each in some]
    queue = "finance" if what == "payments" else "crm"
    with postroom.open(words[1], create=False) as room:
        sent = room.send_many(queue, [body for body in bodies if body], format="xml")
    print(f"{len(sent.keys)} message(s) sent to {queue}")


if __name__ == "__main__":
    main(sys.argv[1:])
