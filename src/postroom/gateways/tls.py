"""TLS to partners: trusted certificates and our own, from files that an operator names."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def context_of(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """The TLS context of an endpoint; raises ``ValueError`` with the setting whose file is not usable."""
    check_files(settings, ("ca", "certificate", "key"))
    try:
        context = ssl.create_default_context(cafile=settings.get("ca"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"ca: {settings['ca']} has no certificates that can be read ({type(error).__name__})"
        ) from None
    if "certificate" in settings:
        try:  # nobody is there to be asked for the password of a key
            context.load_cert_chain(settings["certificate"], settings.get("key"), password=lambda: b"")
        except (OSError, ValueError) as error:
            files = " and ".join(settings[name] for name in ("certificate", "key") if name in settings)
            raise ValueError(f"certificate: {files} cannot be used ({type(error).__name__})") from None
    return context


def check_files(settings: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise ``ValueError`` if a file that a setting names cannot be read."""
    for name in names:
        if name in settings:
            try:
                with Path(settings[name]).open("rb") as file:
                    file.read(1)
            except OSError as error:
                raise ValueError(f"{name}: {settings[name]} cannot be read: {error.strerror}") from None
