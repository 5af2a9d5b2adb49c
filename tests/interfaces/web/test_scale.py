"""Very much: 100,000 messages in a queue, 1,000 stations, a body of 4 MB; what each page takes on the server's side."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import pytest
from tests.interfaces.http.conftest import Served, serving
from tests.interfaces.web.conftest import PASSWORD, Browser, browser, finished, open_back_office, open_office
from tests.passwords import cheap

import postroom

MESSAGES, STATIONS, BODY_BYTES = 100_000, 1_000, 4 * 1024 * 1024
WIDE = "/desk/Ann/query/CLAIM"


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    """A large office, and the keys of what is looked at."""
    folder: Path = tmp_path_factory.mktemp("crowded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("postroom.model.password._hasher", cheap)
        with postroom.open(f"{folder}/office.db") as room, serving(room) as served:
            open_office(room, folder)
            open_back_office(room, folder)
            for number in range(STATIONS - 3):
                room.stations.add(f"S{number}", PASSWORD)
            room.access.grant("clerk", "work", "*")
            for start in range(0, MESSAGES, 10_000):
                room.send_many("orders", [{"order": start + number} for number in range(10_000)])
            large = room.send("stock", "<ask>" + "<line>x</line>" * (BODY_BYTES // 14 - 2) + "</ask>", format="xml").key
            ann = room.stations.admitted("Ann")
            forms = ann.create_many("CLAIM", [{"No": number, "Claimant": "x"} for number in range(2_000)])
            ann.ship(forms[:1_000], "Ben")
            for number in range(STATIONS - 3):  # each has a form at hand, and one in the mailbox
                station = room.stations.admitted(f"S{number}")
                station.create_many("CLAIM", [{"No": number, "Claimant": "y"}])
                station.ship(
                    station.create("CLAIM", {"No": number, "Claimant": "z"}), f"S{(number + 1) % (STATIONS - 3)}"
                )
            room.consumers.set_policy("orders", attempts=1)
            for message in room.consumers.receive_many("orders", count=1_000):
                message.fail(f"there is no customer {message.key}")
            yield served, {"large": large, "form": forms[-1], "mail": forms[0]}


@pytest.mark.slow
def test_every_page_answers_soon_however_much_there_is(
    crowded: tuple[Served, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Under a second of processor time each, in the second look; the figures are printed."""
    served, keys = crowded
    clerk: Browser = browser(served.url)
    clerk.sign_in("clerk")
    took = {}
    for address in (
        "/overview",
        "/queues/orders",
        "/overview?all=1",
        "/overview?doctor=1",
        "/queues/orders?text=nothing+like+it",
        "/queues/orders?property=customer&value=7",
        "/queues/orders?processed=1",
        f"/messages/{keys['large']}",
        f"/trace/{keys['large']}",
        "/queues/stock",
        "/failures",
        "/journal",
        "/journal?verb=nothing",
        "/flows",
        "/programs",
        "/programs?file=shop.demaq",
        "/spheres",
        "/access",
        "/desk/Ann",
        f"/desk/Ben?mail={keys['mail']}",
        f"/desk/Ann/forms/{keys['form']}",
        "/desk/Ann/new",
        "/desk/Ann/query",
        "/desk/Ann/query/CLAIM?find=1&field:No=1",
        WIDE,
        "/templates?type=CLAIM",
        "/procedures?name=settle",
        "/you",
        "/find?q=orders",
    ):
        asked = partial(clerk.post, WIDE, do="find", scope="global") if address == WIDE else partial(clerk.get, address)
        finished(clerk, asked())  # what is read once is not counted
        begin, busy = perf_counter(), process_time()
        answer = asked()
        took[address] = process_time() - busy, perf_counter() - begin
        finished(clerk, answer)  # a server that stops waits until Spark has started
        assert answer.status_code == 200, address
        assert len(answer.content) < 2_000_000, address
    with capsys.disabled():
        print()
        for address, (busy, seconds) in sorted(took.items(), key=lambda pair: -pair[1][0]):
            print(f"{busy * 1000:7.0f} ms of processor time, {seconds * 1000:7.0f} ms  {address}")
    clerk.client.close()
    assert {address: busy for address, (busy, _) in took.items() if busy >= 1} == {}
