"""Apache WSS4J and we: it verifies what we sign and hide, and we what it does; neither takes what was altered."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gateways.served import ORDER
from tests.gateways.soap.test_security import ALTERED, FULL, SIGNED, keys, made, verified
from tests.programs import package

from postroom.gateways.soap import security
from postroom.model.soap import addressed, written
from postroom.model.ws_policy import SecurityPolicy

__all__ = ["keys"]
pytestmark = pytest.mark.slow
JAVA = Path("/usr/share/java")
JARS = ["wss4j.jar", "xmlsec.jar", "commons-logging.jar", "slf4j-api.jar", "slf4j-nop.jar", "commons-codec.jar"]
SOURCE = Path(__file__).parent / "wss4j" / "Partner.java"
TOKENS = SecurityPolicy(timestamp=True, username="digest", sign=True)


class Partner:
    """A process of Java that answers line by line."""

    def __init__(self, child: subprocess.Popen[str], folder: Path) -> None:
        self._child, self._folder, self._many = child, folder, 0

    def _ask(self, *words: object) -> str:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(" ".join(map(str, words)) + "\n")
        self._child.stdin.flush()
        return self._child.stdout.readline().strip()

    def _file(self, text: str = "") -> Path:
        self._many += 1
        file = self._folder / f"{self._many}.xml"
        file.write_text(text)
        return file

    def verified(self, text: str) -> str:
        """``taken`` and what of it, or ``refused`` and why."""
        return self._ask("verify", self._file(text))

    def protected(self, text: str) -> str:
        file = self._file()
        assert self._ask("protect", self._file(text), file) == "made"
        return file.read_text()


@contextmanager
def partner(folder: Path, settings: dict[str, str], *more: str) -> Iterator[Partner]:
    package(JAVA / "wss4j.jar", "libwss4j-java", "libslf4j-java", "libcommons-codec-java")
    if shutil.which("java") is None or shutil.which("keytool") is None:
        pytest.skip("java is not installed: apt-get install openjdk-17-jdk-headless")
    folder.mkdir()
    store, word = folder / "keys.p12", "secret-of-the-store"
    files = ["-inkey", settings["wss-key"], "-in", settings["wss-certificate"], "-out", str(store)]
    subprocess.run(
        ["openssl", "pkcs12", "-export", *files, "-name", "own", "-passout", f"pass:{word}"],
        check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(
        ["keytool", "-importcert", "-noprompt", "-alias", "partner", "-file", settings["wss-partner"],
         "-keystore", store, "-storepass", word],
        check=True, capture_output=True,
    )  # fmt: skip
    places = ":".join(str(JAVA / jar) for jar in JARS)
    words = ["java", "-cp", places, str(SOURCE), str(store), word, "own", "partner", "buyer", "pässword", *more]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield Partner(child, folder)
        finally:
            child.kill()


@pytest.fixture(scope="module")
def supplier(keys: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Partner]:
    with partner(tmp_path_factory.mktemp("wss4j") / "supplier", keys["supplier"]) as it:
        yield it


def test_wss4j_takes_what_we_protect(supplier: Partner, keys: Any) -> None:
    everything = "signed:Action signed:Body signed:MessageID signed:Timestamp signed:UsernameToken time token"
    assert supplier.verified(made(SIGNED, keys["buyer"])) == (
        "taken signed:Action signed:Body signed:MessageID signed:Timestamp time"
    )
    assert supplier.verified(made(TOKENS, keys["buyer"])) == f"taken {everything}"
    assert supplier.verified(made(FULL, keys["buyer"])) == f"taken hidden:Body {everything}"


#: Of these, WSS4J leaves it to its caller to see that the body that was signed is the one that is used.
_OF_ITS_CALLER = {"no signature", "no security", "wrapped", "twice"}


@pytest.mark.parametrize("how", ALTERED.keys() - _OF_ITS_CALLER)
def test_wss4j_refuses_what_was_altered(how: str, supplier: Partner, keys: Any) -> None:
    assert supplier.verified(ALTERED[how](made(SIGNED, keys["buyer"]))).startswith("refused")


def test_wss4j_refuses_another_key_and_another_password(supplier: Partner, keys: Any) -> None:
    assert supplier.verified(made(SIGNED, keys["other"])).startswith("refused")
    stranger = {**keys["buyer"], "wss-username": "else"}
    assert supplier.verified(made(TOKENS, stranger)).startswith("refused")


@pytest.mark.parametrize(("policy", "hide"), [(TOKENS, ()), (FULL, ("HIDE",))])
def test_we_take_what_wss4j_protects(policy: SecurityPolicy, hide: tuple[str, ...], keys: Any, tmp_path: Path) -> None:
    with partner(tmp_path / "buyer", keys["buyer"], *hide) as buyer:
        plain = written("1.1", addressed("urn:a", "urn:m"), ORDER % 7)
        assert verified(buyer.protected(plain), policy, keys["supplier"]).message() == ORDER % 7
        text = buyer.protected(plain)
        place = text.index("CipherValue>", text.index("<soap:Body")) + 40 if hide else text.index("<id>7<") + 4
        altered = text[:place] + ("8" if text[place] != "8" else "9") + text[place + 1 :]
        with pytest.raises(security.Unsafe):
            verified(altered, policy, keys["supplier"])
        with pytest.raises(security.Unsafe):
            verified(text, policy, {**keys["supplier"], "wss-partner": keys["other"]["wss-certificate"]})
