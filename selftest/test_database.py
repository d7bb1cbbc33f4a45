"""The example database: in a directory, on a Redis server that workers share, and when that server goes away."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis.database import DirectoryBasedExampleDatabase, MultiplexedDatabase

from properties import database

ROOT = Path(__file__).resolve().parents[1]
SERVER = shutil.which("redis-server")
needs_redis = pytest.mark.skipif(SERVER is None, reason="needs redis-server, to share examples through")
WRONG = "mutants:weights-swapped"
PROPERTY = str(ROOT / "properties" / "test_exactness.py") + "::test_two_states_merge_within_the_bound"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address and the process of a Redis server on a free port, which keeps nothing."""
    assert SERVER is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [SERVER, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield f"redis://127.0.0.1:{port}/0", process
    process.kill()
    process.wait()


def _worker(directory: Path, address: str, profile: str) -> subprocess.Popen[str]:
    """A pytest process of its own, in a directory of its own, on one property of a wrong implementation."""
    directory.mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    command = [sys.executable, "-m", "pytest", PROPERTY, "-q", f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}",
               "-p", "no:cacheprovider", f"--impl={WRONG}", f"--hypothesis-profile={profile}", "--law", "1"]  # fmt: skip
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.Popen(  # noqa: S603  # this very Python
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**environment, "PYTHONPATH": path, database.VARIABLE: address},
    )  # fmt: skip


def test_each_implementation_has_a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory below the one that is named, without colons or slashes; an artifact on GitHub is read beside it."""
    monkeypatch.delenv(database.VARIABLE, raising=False)
    assert database.place("some/file.py:impl") == "some-file.py-impl"
    assert database.database("a:b") == DirectoryBasedExampleDatabase(database.LOCAL / "a-b")
    monkeypatch.setenv(database.VARIABLE, str(tmp_path))
    assert database.database("ours") == DirectoryBasedExampleDatabase(tmp_path / "ours")
    assert isinstance(database.database("ours", "github://owner/repository"), MultiplexedDatabase)
    for wrong in ("ftp://somewhere", "github://owner", "mongodb://host:1/0"):
        with pytest.raises(ValueError, match=r"MERGELAWS_DATABASE is .*; it must be a directory, redis://"):
            database.database("ours", wrong)


@needs_redis
def test_what_one_saves_another_finds_until_the_server_is_gone(
    server: tuple[str, subprocess.Popen[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two directories, one server; deleted is deleted for both; killed, it is told once, and nothing is lost."""
    address, process = server
    told: list[str] = []

    def shared(name: str, implementation: str = "ours") -> database.Shared:
        remote = database._redis(address, implementation)
        return database.Shared(DirectoryBasedExampleDatabase(tmp_path / name), remote, address, told.append)

    here, there, other = shared("here"), shared("there"), shared("there", "theirs")
    here.save(b"key", b"one")
    here.save(b"key", b"two")
    assert set(there.fetch(b"key")) == {b"one", b"two"} and not list(other.fetch(b"key"))
    here.delete(b"key", b"two")
    assert list(there.fetch(b"key")) == [b"one"] == list(here.fetch(b"key"))
    process.kill()
    process.wait()
    here.save(b"key", b"three")
    here.save(b"key", b"four")
    assert set(here.fetch(b"key")) == {b"one", b"three", b"four"}
    assert len(told) == 1 and "no longer answers (ConnectionError)" in told[0] and address in told[0]


@needs_redis
def test_a_worker_replays_first_what_another_found(server: tuple[str, subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """In another directory, with the profile that draws nothing new."""
    address, _ = server
    nothing, _ = _worker(tmp_path / "before", address, "replay").communicate(timeout=200)
    assert "nothing to replay" in nothing and "1 skipped" in nothing, nothing
    found, _ = _worker(tmp_path / "one", address, "quick").communicate(timeout=200)
    assert "1 failed" in found, found
    again, _ = _worker(tmp_path / "two", address, "replay").communicate(timeout=200)
    assert "1 failed" in again, again


@needs_redis
def test_a_server_that_is_killed_in_the_middle_costs_no_failure(
    server: tuple[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """The worker says so, ends as it would have, and its own directory has what it found."""
    address, process = server
    from redis import Redis  # noqa: PLC0415  # an extra

    worker = _worker(tmp_path / "one", address, "nightly")
    client = Redis.from_url(address)
    while worker.poll() is None and not client.keys("mergelaws:*"):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    found, _ = worker.communicate(timeout=200)
    assert "1 failed" in found and "no longer answers" in found, found
    again = _worker(tmp_path / "two", str(tmp_path / "one" / database.LOCAL), "replay")
    told, _ = again.communicate(timeout=200)
    assert "1 failed" in told, told
