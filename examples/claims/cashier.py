"""A cashier's program: takes one payment after another and orders it at the bank, each in a sphere of its own.

If it ends before a sphere is committed, the order comes back in the queue "returns", and the payment is in "payments"
again. One cashier works at a time. The room is that of POSTROOM_URL. With --hold it stops in the middle of its first
payment, and waits to be ended.

python examples/claims/cashier.py [--hold]
"""

from __future__ import annotations

import sys
import time

import postroom
from postroom import Compensation

HEARTBEAT = 0.5  # seconds


def pay(room: postroom.Postroom, hold: bool) -> bool:
    """Make the next payment; False if there is none."""
    waiting = next(iter(room.peek("payments", limit=1)), None)
    if waiting is None:
        return False
    with room.sphere(heartbeat=HEARTBEAT) as sphere:
        payment = sphere.receive("payments")
        sphere.send("bank", payment, compensation=Compensation(payment, queue="returns"))
        sphere.send("LETTERS", payment, when="commit")
        if hold:
            print(f"payment {waiting.key} is ordered at the bank", flush=True)
            time.sleep(600)
    return True


def main(hold: bool) -> int:
    paid = 0
    with postroom.open(actor="cashier", create=False) as room:
        while pay(room, hold):
            paid += 1
    print(f"{paid} payment(s) made", flush=True)
    return paid


if __name__ == "__main__":
    main("--hold" in sys.argv[1:])
