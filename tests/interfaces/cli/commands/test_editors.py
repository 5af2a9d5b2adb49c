"""The command that editors start."""

from __future__ import annotations

import subprocess
import sys


def test_the_server_speaks_on_standard_output() -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}'
    leave = b'{"jsonrpc": "2.0", "method": "exit"}'
    said = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(each), each) for each in (body, leave))
    ran = subprocess.run([sys.executable, "-m", "postroom", "lsp"], input=said, capture_output=True, timeout=60)
    assert ran.stdout.startswith(b"Content-Length: ")
    assert b'"serverInfo"' in ran.stdout
    assert ran.returncode == 1, "it was not shut down before it left"
