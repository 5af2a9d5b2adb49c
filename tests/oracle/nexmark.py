"""NEXMark over plain lists: events that are a little out of order, and what each query answers, by loops alone."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

Events = list[tuple[str, dict[str, Any]]]
_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
_STATES = ["OR", "ID", "CA", "WA", "NY"]
#: What comes after everything else, so that every window is over: in this auction, of this seller.
LAST = 1_000_000


def text(seconds: float) -> str:
    return (_BEGIN + timedelta(seconds=seconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def generated(seed: int, count: int) -> Events:
    """Events of the three spaces: each up to four seconds later than it should be, none of them late."""
    dice = random.Random(seed)
    events: list[tuple[float, str, dict[str, Any]]] = []
    persons, auctions = 0, 0
    for number in range(count):
        time = number * 0.25
        arrives = time + dice.random() * 4
        kind = dice.randrange(10)
        if persons == 0 or kind == 0:
            body = {"id": persons, "name": f"n{persons}", "city": f"c{persons % 7}", "state": dice.choice(_STATES)}
            events.append((arrives, "Persons", {**body, "time": text(time)}))
            persons += 1
        elif auctions == 0 or kind in (1, 2):
            seller = dice.randrange(max(0, persons - 4), persons)
            body = {"id": auctions, "item": f"i{auctions}", "seller": seller, "category": 8 + dice.randrange(4)}
            length = 3 + dice.randrange(20)
            events.append((arrives, "Auctions", {**body, "time": text(time), "expires": text(time + length)}))
            auctions += 1
        else:
            body = {"auction": dice.randrange(max(0, auctions - 6), auctions), "bidder": dice.randrange(persons)}
            events.append((arrives, "Bids", {**body, "price": dice.randrange(1, 60), "time": text(time)}))
    found = [(space, body) for _, space, body in sorted(events, key=lambda each: each[0])]
    return found + list(_ending(count))


def _ending(count: int) -> Events:
    found: Events = []
    for day in (1, 2, 3):
        time = text(86_400 * day)
        person = {"id": LAST + day, "name": "last", "city": "", "state": "OR", "time": time}
        auction = {"id": LAST + day, "item": "last", "seller": LAST + day, "category": LAST}
        found.append(("Persons", person))
        found.append(("Auctions", {**auction, "time": time, "expires": text(86_400 * day + 3600)}))
        found.append(("Bids", {"auction": LAST + day, "bidder": LAST, "price": 1, "time": time}))
    return found


def _moment(said: str) -> float:
    return (datetime.fromisoformat(said) - _BEGIN).total_seconds()


def answers(events: Events) -> dict[str, list[str]]:
    """What each query answers about all that has come before the end, as sorted lines of JSON."""
    found: dict[str, list[Any]] = defaultdict(list)
    persons, auctions, bids = (
        [body for space, body in events if space == name] for name in ("Persons", "Auctions", "Bids")
    )
    for bid in bids:
        found["Q1"].append({**bid, "price": format(Decimal(bid["price"]) * Decimal("0.908"), "f")})
        if bid["auction"] % 5 == 0:
            found["Q2"].append({"auction": bid["auction"], "price": bid["price"]})
    for auction in auctions:
        for person in persons:
            if auction["category"] == 10 and auction["seller"] == person["id"] and person["state"] in _STATES[:3]:
                said = {name: person[name] for name in ("name", "city", "state")}
                found["Q3"].append({**said, "auction": auction["id"]})
    _won(auctions, bids, found)
    _hot(bids, found)
    _highest(bids, found)
    for person in persons:
        window = _moment(person["time"]) // 10
        sold = [each for each in auctions if each["seller"] == person["id"] and _moment(each["time"]) // 10 == window]
        if sold:
            found["Q8"].append({"id": person["id"], "name": person["name"], "from": text(window * 10)})
    return {name: sorted(json.dumps(each) for each in some if not last(each)) for name, some in found.items()}


def last(said: dict[str, Any]) -> bool:
    """Whether it is of what comes after everything else: not all of that is over."""
    known = [said.get(name, 0) for name in ("auction", "id", "seller", "category")]
    return any(number >= LAST for number in known) or said.get("time", "") >= text(86_400)


def _won(auctions: Any, bids: Any, found: Any) -> None:
    won = []
    for auction in auctions:
        prices = [
            bid["price"]
            for bid in bids
            if bid["auction"] == auction["id"] and auction["time"] <= bid["time"] < auction["expires"]
        ]
        if prices and auction["id"] < LAST:
            keys = [auction["id"], auction["category"], auction["seller"], auction["expires"]]
            won.append((auction["expires"], json.dumps(keys, separators=(",", ":")), max(prices), auction))
    categories, sellers = defaultdict(list), defaultdict(list)
    for _, _, price, auction in sorted(won, key=lambda each: each[:2]):
        categories[auction["category"]].append(price)
        sellers[auction["seller"]].append(price)
        of_category, of_seller = categories[auction["category"]], sellers[auction["seller"]][-10:]
        found["Q4"].append({"category": auction["category"], "average": sum(of_category) / len(of_category)})
        found["Q6"].append({"seller": auction["seller"], "average": sum(of_seller) / len(of_seller)})


def _hot(bids: Any, found: Any) -> None:
    counts: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for bid in bids:
        for end in range(int(_moment(bid["time"]) // 2) * 2 + 2, int(_moment(bid["time"]) // 2) * 2 + 11, 2):
            counts[end][bid["auction"]] += 1
    for end, by_auction in counts.items():
        most = max(by_auction.values())
        found["Q5"] += [
            {"auction": auction, "n": n, "time": text(end)} for auction, n in by_auction.items() if n == most
        ]


def _highest(bids: Any, found: Any) -> None:
    windows = defaultdict(list)
    for bid in bids:
        windows[_moment(bid["time"]) // 10].append(bid)
    for some in windows.values():
        highest = max(bid["price"] for bid in some)
        found["Q7"] += [bid for bid in some if bid["price"] == highest]
