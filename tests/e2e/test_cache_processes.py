"""The cache between real processes: several at once, killed in the middle, on a disk that is full (C1, C3)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from e2e.talking import PATIENCE, kill_group
from rules import rule
from skillwire.skill.entry import digest_of
from skillwire.skill.verify import VerifiedFile
from skillwire.store.content_cache import ContentCache
from starting import python_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What every child begins with: content that each process can compute, and the cache at argv[1].
PRELUDE = """
import logging, os, random, sys
from pathlib import Path
from skillwire.store.content_cache import ContentCache
from skillwire.skill.entry import digest_of
from skillwire.skill.verify import VerifiedFile

logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")

def file_of(number, size=20_000):
    data = random.Random(number).randbytes(size)
    return VerifiedFile(f"skill://acme/s{number}/SKILL.md", data, digest_of(data))

def say(text):
    print(text, flush=True)

def stop(*_, **__):
    say("stopped")
    sys.stdin.read()
"""


def file_of(number: int, size: int = 20_000) -> VerifiedFile:
    data = random.Random(number).randbytes(size)
    return VerifiedFile(f"skill://acme/s{number}/SKILL.md", data, digest_of(data))


@contextmanager
def started(
    code: str, *arguments: object, prefix: tuple[str, ...] = (), new: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs ``code``: a fork, or a new one. It does not outlive the block."""
    python = [*prefix, sys.executable] if new or prefix else python_command()
    process = subprocess.Popen(
        [*python, "-c", PRELUDE + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill_group(process)


def wait_for(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().decode() == f"{line}\n"


def finish(process: subprocess.Popen[bytes]) -> list[str]:
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out
    return out.decode().splitlines()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate(timeout=PATIENCE)  # its pipe is closed when it is dead
    assert process.returncode == -signal.SIGKILL


def held(cache: ContentCache, file: VerifiedFile, origin: str = "acme") -> bytes | None:
    return cache.get(origin, file.uri, file.digest)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


BUSY = """
cache = ContentCache(Path(sys.argv[1]), forbidden=(), max_bytes=1_000_000)
choose = random.Random(int(sys.argv[2]))
hits = 0
for step in range(200):
    origin, file = choose.choice("ab"), file_of(choose.randrange(60))
    what = choose.choices(["put", "get", "remove", "prune", "verify", "usage"], [50, 40, 3, 3, 1, 3])[0]
    if what == "put":
        cache.put(origin, file)
    elif what == "get":
        data = cache.get(origin, file.uri, file.digest)
        assert data in (None, file.data)
        hits += data is not None
    elif what == "remove":
        cache.remove_origin(origin)
    elif what == "prune":
        cache.prune(500_000, now=0)  # every temporary file is a leftover by this clock, also a live one
    elif what == "verify":
        assert cache.verify() == []
    else:
        cache.usage()
say(f"hits {hits}")
"""


@rule("C1")
def test_processes_that_put_get_remove_and_prune_at_once_do_not_hurt_each_other(root: Path) -> None:
    """No call fails, no byte is wrong, nothing is reported as damaged, and the bound holds."""
    with ExitStack() as stack:
        processes = [stack.enter_context(started(BUSY, root, seed)) for seed in range(3)]
        said = [finish(process) for process in processes]
    for lines in said:
        assert lines[-1].startswith("hits ")
        assert not any("damage" in line for line in lines)
    assert sum(int(lines[-1].split()[1]) for lines in said) > 0
    cache = ContentCache(root, forbidden=(), max_bytes=1_000_000)
    assert cache.verify() == []
    assert cache.usage().bytes <= 1_000_000 + 3 * (1_000_000 // 16)
    for origin in "ab":
        cache.remove_origin(origin)
    cache.prune(now=time.time())
    assert list(root.iterdir()) == []


SAME = """
say("ready")
sys.stdin.readline()
cache = ContentCache(Path(sys.argv[1]), forbidden=())
for number in range(40):
    cache.put("acme", file_of(number))
    assert cache.get("acme", file_of(number).uri, file_of(number).digest) == file_of(number).data
"""


def test_two_processes_that_put_the_same_content_both_find_it(root: Path) -> None:
    """Both also make the folders at the same time."""
    with ExitStack() as stack:
        processes = [stack.enter_context(started(SAME, root)) for _ in range(2)]
        for process in processes:
            wait_for(process, "ready")
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        assert [finish(process) for process in processes] == [[], []]
    assert ContentCache(root, forbidden=()).usage().files == 40
    assert not list(root.rglob("tmp-*"))


STOPPED = """
cache = ContentCache(Path(sys.argv[1]), forbidden=())
cache.put("acme", file_of(1))
write = os.write
def half(descriptor, data):
    write(descriptor, data[: len(data) // 2])
    stop()
setattr(os, sys.argv[2], half if sys.argv[2] == "write" else stop)
cache.put("acme", file_of(2))
"""


@rule("C1")
@pytest.mark.parametrize("moment", ["write", "rename"])
def test_a_process_killed_while_it_writes_leaves_nothing_that_is_found(root: Path, moment: str) -> None:
    """Half a file has no name that anybody asks for; it goes an hour later."""
    with started(STOPPED, root, moment) as process:
        wait_for(process, "stopped")
        kill(process)
    cache = ContentCache(root, forbidden=())
    assert held(cache, file_of(1)) == file_of(1).data
    assert held(cache, file_of(2)) is None
    assert (cache.usage().files, cache.verify()) == (1, [])
    cache.prune(now=time.time())
    assert len(list(root.rglob("tmp-*"))) == 1
    cache.prune(now=time.time() + 3700)
    assert not list(root.rglob("tmp-*"))
    cache.put("acme", file_of(2))
    assert held(cache, file_of(2)) == file_of(2).data


REMOVING = """
import shutil
cache = ContentCache(Path(sys.argv[1]), forbidden=())
cache.put("acme", file_of(1))
cache.put("other", file_of(1))
shutil.rmtree = stop
cache.remove_origin("acme")
"""


@rule("C3")
def test_a_process_killed_while_it_removes_an_origin_leaves_nothing_that_is_found(root: Path) -> None:
    """The content is out of sight at once, and off the disk when somebody prunes."""
    with started(REMOVING, root) as process:
        wait_for(process, "stopped")
        kill(process)
    cache = ContentCache(root, forbidden=())
    assert held(cache, file_of(1)) is None
    assert cache.usage().by_origin == {"other": 20_000}
    assert len(list(root.iterdir())) == 2
    cache.prune(now=time.time())
    assert len(list(root.iterdir())) == 1


ENDLESS = """
cache = ContentCache(Path(sys.argv[1]), forbidden=())
number = int(sys.argv[2])
while True:
    number += 1
    say(f"put {number}")
    cache.put("acme", file_of(number, 1_000_000))
"""


@rule("C1")
def test_processes_killed_at_any_moment_leave_only_whole_files(root: Path) -> None:
    """Wherever the kill strikes, what was put before is there and nothing is damaged."""
    for attempt in range(3):
        with started(ENDLESS, root, attempt * 1000, new=True) as process:
            for number in range(attempt * 1000 + 1, attempt * 1000 + 4 + attempt):
                wait_for(process, f"put {number}")
            kill(process)
        cache = ContentCache(root, forbidden=())
        assert cache.verify() == []
        for done in range(attempt * 1000 + 1, number):
            assert held(cache, file_of(done, 1_000_000)) is not None


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))
cache = ContentCache(Path(sys.argv[1]), forbidden=())
cache.put("acme", file_of(1, 20_000))
cache.put("acme", file_of(2, 5_000))
"""


def test_a_file_that_the_system_cuts_off_is_not_kept(root: Path) -> None:
    """The first bytes are written, the rest is refused; the load goes on."""
    with started(LIMITED, root) as process:
        [line] = finish(process)
    assert "20000" in line
    cache = ContentCache(root, forbidden=())
    assert held(cache, file_of(1, 20_000)) is None
    assert held(cache, file_of(2, 5_000)) is not None
    assert not list(root.rglob("tmp-*"))


FULL = """
import subprocess
root = Path(sys.argv[1])
root.mkdir(0o700)
options = "size=256k,mode=700"
subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(root)], check=True, timeout=10)
cache = ContentCache(root, forbidden=())
for number in range(20):
    cache.put("acme", file_of(number))
kept = [number for number in range(20) if cache.get("acme", file_of(number).uri, file_of(number).digest)]
assert 0 < len(kept) < 20 and kept == list(range(len(kept))), kept
assert not list(root.rglob("tmp-*")) and cache.verify() == []
cache.remove_origin("acme")
cache.put("acme", file_of(19))
assert cache.get("acme", file_of(19).uri, file_of(19).digest) == file_of(19).data
"""
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")


def can_mount() -> bool:
    try:
        tried = subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, timeout=10)
    except OSError:
        return False
    return tried.returncode == 0


@pytest.mark.skipif(not can_mount(), reason="needs a system where a user can mount a small disk of their own")
def test_a_full_disk_costs_no_load_and_leaves_no_litter(root: Path) -> None:
    """What was verified is used all the same; when there is room again, it is kept again."""
    with started(FULL, root, prefix=UNSHARE) as process:
        lines = finish(process)
    assert lines
    assert all("20000" in line for line in lines)


def test_a_cache_of_another_user_is_refused_for_real(root: Path) -> None:
    """The owner is checked, also for root, who could open it."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to make a folder that belongs to somebody else")
    root.mkdir(0o700)
    os.chown(root, 65534, 65534)
    with started("ContentCache(Path(sys.argv[1]), forbidden=())", root) as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert b"[cache-unsafe" in out
