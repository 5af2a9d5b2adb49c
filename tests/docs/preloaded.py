"""``postroom`` without its imports: a process that has all of them is forked for each command of a page.

Pages have seven hundred commands, and a command spends four fifths of its time on imports. What is typed is a small
program (``SHIM``). It hands its words, folder, environment and open files to a process that waits with the modules
loaded. A fork of that runs the same ``main``, as a child of the same shell would: signals reach it, its exit code is
the program's, and the shell is its user. Hashes of passwords are cheap, as in all tests that are not about them.

``README.md`` is run with the program as it was installed. So is a page that kills one for good, because that signal
reaches only what the shell has started, and the page about COBOL, whose programs hand over other open files. A slow
battery runs all pages so.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

#: It imports nothing that is written in Python.
SHIM = """\
#!{python} -IS
import _signal, _socket, os, sys

there = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
there.connect({address!r})
passed = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP)
ignored = [str(int(each)) for each in passed if _signal.getsignal(each) == _signal.SIG_IGN]
for each in passed:
    if str(int(each)) not in ignored:
        _signal.signal(each, lambda number, _: there.send(bytes([number])))
words = [os.getcwd(), str(os.getppid()), " ".join(ignored), str(len(sys.argv)), *sys.argv]
words += [f"{{name}}={{value}}" for name, value in os.environ.items()]
said = "\\0".join(words).encode("utf-8", "surrogateescape")
files = b"".join(each.to_bytes(4, sys.byteorder) for each in (0, 1, 2))
there.sendmsg([len(said).to_bytes(4, "big")], [(_socket.SOL_SOCKET, 1, files)])
while said:
    said = said[there.send(said):]
code = int.from_bytes(there.recv(4), "big", signed=True)
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL) if code != -9 else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@contextmanager
def preloaded(folder: Path) -> Iterator[Path]:
    """A folder with such a program."""
    address = str(folder / "postroom.socket")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.docs.preloaded", address],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout as said:
        assert said.readline() == b"ready\n"
        program = folder / "postroom"
        program.write_text(SHIM.format(python=sys.executable, address=address))
        program.chmod(0o755)
        try:
            yield folder
        finally:
            process.terminate()
            process.wait()


def load() -> None:
    """Import what commands import. What has threads of its own is left to the command that needs it."""
    from postroom.interfaces.cli import main

    for module in {*main.COMMANDS, *main.GROUPS.values()}:
        import_module(f"postroom.interfaces.cli.commands.{module}")
    for module in ("room.opening", "store.sqlite.store", "queues.tree.description", "rules.loading", "flows.loading"):
        import_module(f"postroom.{module}")
    for module in ("stations.loading", "spheres", "exchange.bulk"):
        import_module(f"postroom.{module}")


def _cheap() -> object:
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=1, memory_cost=19_456, parallelism=1)


def serve(address: str) -> None:
    """Fork for each that connects; returns in the forks."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as asked:
        asked.register(listener, selectors.EVENT_READ)
        asked.register(wake, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, _ in asked.select():
                if key.fileobj is listener:
                    shell, _ = listener.accept()
                    said, files = _received(shell)
                    pid = os.fork()
                    if not pid:
                        signal.set_wakeup_fd(-1)
                        _become(said, files)
                        return
                    for file in files:
                        os.close(file)
                    running[pid] = shell
                    asked.register(shell, selectors.EVENT_READ, pid)
                elif key.fileobj == wake:
                    os.read(wake, 4096)
                    for pid, code in _ended():
                        with running.pop(pid) as shell:
                            asked.unregister(shell)
                            shell.sendall(struct.pack(">i", code))
                elif key.data in running and (number := running[key.data].recv(1)):
                    os.kill(key.data, number[0])


def _ended() -> Iterator[tuple[int, int]]:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def _received(shell: socket.socket) -> tuple[list[str], list[int]]:
    first, files, _, _ = socket.recv_fds(shell, 4, 3)
    size = int.from_bytes(first, "big")
    said = b""
    while len(said) < size:
        said += shell.recv(size - len(said))
    return said.decode("utf-8", "surrogateescape").split("\0"), list(files)


def _become(said: list[str], files: list[int]) -> None:
    """What a child of the shell would be."""
    folder, parent, ignored, count, *rest = said
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)  # as Python opens them at its start
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False, buffering=1, errors="backslashreplace")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in map(int, ignored.split()):
        signal.signal(number, signal.SIG_IGN)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(dict(item.split("=", 1) for item in rest[int(count) :]))
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = rest[: int(count)]
    os.getppid = lambda: int(parent)


if __name__ == "__main__":
    load()
    gc.freeze()
    serve(sys.argv[1])
    from postroom.interfaces.cli.main import main
    from postroom.model import password

    password._hasher = _cheap  # type: ignore[assignment]
    main()
