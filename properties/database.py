"""Where failing examples are kept: a directory, a Redis server that several machines share, or what a nightly left on GitHub.

MERGELAWS_DATABASE says where: nothing (.hypothesis/examples), a directory, redis://HOST:PORT/N, or github://OWNER/REPO,
whose latest artifact is read and never written. Each implementation has a place of its own there, since Hypothesis's key
does not know it. A server that no longer answers loses nothing: what is saved there is saved in the directory, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    ExampleDatabase,
    GitHubArtifactDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)

VARIABLE = "MERGELAWS_DATABASE"
LOCAL = Path(".hypothesis") / "examples"
_PATIENCE = 5.0  # seconds for an answer of the server


def place(implementation: str) -> str:
    """The implementation's name as a file's or a key's: letters, digits, - _ and ."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in implementation)


def database(implementation: str, where: str | None = None) -> ExampleDatabase:
    """The database of `implementation` at `where` (default: what MERGELAWS_DATABASE says).

    Raises ValueError for an address that is none of those above, and LookupError if a package for it is missing.
    """
    where = os.environ.get(VARIABLE, "") if where is None else where
    name = place(implementation)
    scheme, _, address = where.rpartition("://")
    if not scheme:
        return DirectoryBasedExampleDatabase((Path(where) if where else LOCAL) / name)
    local = DirectoryBasedExampleDatabase(LOCAL / name)
    if scheme in ("redis", "rediss", "unix"):
        return Shared(local, _redis(where, name), where)
    if scheme == "github" and address.count("/") == 1 and all(address.split("/")):
        owner, repository = address.split("/")
        artifact = GitHubArtifactDatabase(owner, repository, artifact_name=f"examples-{name}")
        return MultiplexedDatabase(local, ReadOnlyDatabase(artifact))
    raise ValueError(
        f"{VARIABLE} is {where!r}; it must be a directory, redis://HOST:PORT/N or github://OWNER/REPOSITORY"
    )


def _redis(url: str, name: str) -> ExampleDatabase:
    try:
        from hypothesis.extra.redis import RedisExampleDatabase  # noqa: PLC0415  # an extra
        from redis import Redis  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise LookupError(f"{VARIABLE} is {url!r}, and there is no package redis; pip install redis") from error
    client = Redis.from_url(url, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE)
    return RedisExampleDatabase(client, key_prefix=f"mergelaws:{name}:".encode())


class Shared(ExampleDatabase):
    """A directory and a server beside it. Everything is saved in both; what either has is found."""

    def __init__(
        self,
        local: ExampleDatabase,
        remote: ExampleDatabase,
        address: str,
        tell: Callable[[str], object] = lambda words: print(words, file=sys.__stderr__, flush=True),
    ) -> None:
        super().__init__()
        self._local, self._remote, self._address, self._tell = local, remote, address, tell
        self.reachable = True

    def __repr__(self) -> str:
        return f"Shared({self._local!r}, {self._remote!r})"

    def save(self, key: bytes, value: bytes) -> None:
        """Keeps `value` under `key`, in the directory first."""
        self._local.save(key, value)
        self._ask(lambda: self._remote.save(key, value))

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """The values under `key`, each once, the server's first."""
        found: dict[bytes, None] = {}
        self._ask(lambda: found.update(dict.fromkeys(self._remote.fetch(key))))
        yield from found
        yield from (value for value in self._local.fetch(key) if value not in found)

    def delete(self, key: bytes, value: bytes) -> None:
        """Forgets `value` under `key`."""
        self._local.delete(key, value)
        self._ask(lambda: self._remote.delete(key, value))

    def _ask(self, call: Callable[[], object]) -> None:
        """One call of the server; the first that fails is told, and is the last."""
        if not self.reachable:
            return
        try:
            call()
        except Exception as error:  # redis.RedisError, OSError: whatever it is, the run goes on
            self.reachable = False
            self._tell(
                f"mergelaws: the example database {self._address} no longer answers ({type(error).__name__}); "
                f"failures are kept in {LOCAL}"
            )
