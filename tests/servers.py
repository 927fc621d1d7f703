"""A private PostgreSQL server for tests and benchmarks: own folder, free port on loopback, gone afterwards."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path


def binaries() -> Path | None:
    """Where the machine keeps PostgreSQL's programs."""
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    if known:
        return known[-1]
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


class Server:
    """A server that runs until it is stopped, at the latest when this process ends.

    It keeps its files in memory, where the machine has a place for that: a killed process loses nothing that it had
    written, wherever to, and a disk takes seconds to make and to remove them. ``on_disk`` is for benchmarks.
    """

    def __init__(self, *settings: str, on_disk: bool = False) -> None:
        folder = binaries()
        if folder is None:
            raise RuntimeError("PostgreSQL is not installed: install Debian's postgresql package")
        self._bin = folder
        self._process = os.getpid()
        self._home = _new_home(None if on_disk else _memory())
        self._data = self._home / "data"
        _run(self._home, "cp", "-a", str(_cluster(folder)), str(self._data))
        self.port = free_port()
        self._settings = " ".join(
            [f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._home}"]
            + [f"-c {setting}" for setting in ("max_connections=60", "max_wal_size=128MB", *settings)]
        )
        self.start()
        atexit.register(self.remove)

    @property
    def url(self) -> str:
        """The address of the server's first database."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://expost@127.0.0.1:{self.port}/{database}"

    def new_database(self, name: str) -> str:
        """Make a database; its address."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url_of(name)

    def start(self) -> None:
        """Start, and wait until it answers."""
        log = str(self._home / "log")
        self._control("-t", "240", "-l", log, "-o", self._settings, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop: ``immediate`` is as good as a crash."""
        self._control("-m", mode, "stop")

    def kill_backend(self, pid: int) -> None:
        """SIGKILL of one of the server's own processes; the server restarts all others."""
        os.kill(pid, signal.SIGKILL)

    def remove(self) -> None:
        """Stop it and remove its folder; only in the process that started it."""
        if os.getpid() != self._process or not self._home.exists():
            return
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self._home, ignore_errors=True)

    def _control(self, *arguments: str) -> None:
        _run(self._home, str(self._bin / "pg_ctl"), "-D", str(self._data), "-w", *arguments)


class Proxy:
    """A connection to a server that can be made to swallow everything, as a dropped flow does."""

    def __init__(self, port: int) -> None:
        self._target, self.swallowing = port, False
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                if not self.swallowing:
                    other.sendall(data)
        except OSError:
            pass
        other.close()

    def close(self) -> None:
        self._socket.close()


def _new_home(parent: str | None) -> Path:
    """A new folder for whom servers run as: they refuse root."""
    home = Path(tempfile.mkdtemp(prefix="expost-pg-", dir=parent))
    if os.getuid() == 0:
        shutil.chown(home, "nobody")
    return home


def _run(home: Path, *command: str) -> None:
    """Run a program as whom servers run as."""
    if os.getuid() == 0:
        command = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command)
    with open(home / "set-up", "w") as said:  # a file: the server would keep a pipe open
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=300, cwd="/", check=False
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {(home / 'set-up').read_text()}")


@cache
def _cluster(folder: Path) -> Path:
    """What servers begin with a copy of: to make it anew takes eight times as long."""
    home, process = _new_home(_memory()), os.getpid()
    _run(home, str(folder / "initdb"), "-D", f"{home}/data", "-A", "trust", "-U", "expost", "--no-sync", "-E", "UTF8")
    atexit.register(lambda: shutil.rmtree(home, ignore_errors=True) if os.getpid() == process else None)
    return home / "data"


def _memory() -> str | None:
    """A folder in memory, if it has room for two servers."""
    room = os.access("/dev/shm", os.W_OK | os.X_OK) and shutil.disk_usage("/dev/shm").free > 2 * 10**9
    return "/dev/shm" if room else None


def free_port() -> int:
    """A port that nobody listens on, and that no connection gets by itself: systems take those from 32768 on."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def new_schema(server: Server) -> str:
    """The address of a new, empty schema of the server's database."""
    name = f"t{secrets.token_hex(6)}"
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server.url}?options=-csearch_path%3D{name}"
