"""Imports what ``skillwire`` needs, then forks whenever it is asked to, until its input ends."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from typing import Any

import skillwire
from skillwire.cli import main

_LEFT_OUT = ("skillwire.host.adapters.", "skillwire.web", "skillwire.__main__")  # need more, are not for processes


def import_everything() -> None:
    """What every fork has at once."""
    for module in pkgutil.walk_packages(skillwire.__path__, "skillwire."):
        if not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)


def warm(path: str) -> None:
    """Answer until nobody is there to ask."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    wakes, waked = socket.socketpair()
    wakes.setblocking(False)
    waked.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waked.fileno(), warn_on_full_buffer=False)
    gc.freeze()
    print("warm", flush=True)
    lines: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for source in (listener, wakes, sys.stdin):
            selector.register(source, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if sys.stdin in ready:
                os._exit(0)
            if wakes in ready:
                wakes.recv(4096)
                tell_ends(lines)
            if listener in ready:
                line, _ = listener.accept()
                pid = fork(line, listener)
                lines[pid] = line
                say(line, pid)


def fork(line: socket.socket, listener: socket.socket) -> int:
    """A child that becomes what was asked for."""
    first, pipes, _, _ = socket.recv_fds(line, 65536, 3)
    head, _, asked = first.partition(b"\n")
    while len(asked) < int(head):
        asked += line.recv(65536)
    pid = os.fork()
    if pid == 0:
        listener.close()
        become(json.loads(asked), pipes, line)
    for pipe in pipes:
        os.close(pipe)
    return pid


def become(asked: dict[str, Any], pipes: list[int], line: socket.socket) -> None:
    """Be ``skillwire``, as a process that was started as one."""
    code = 70
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        threading.Thread(target=end_with, args=(line,), daemon=True).start()
        sys.argv = ["skillwire", *asked["words"]]
        gc.unfreeze()
        code = main.main() or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # as Python itself would end
        traceback.print_exc()
        code = 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 120
        os._exit(code)


def end_with(line: socket.socket) -> None:
    """Nobody waits for us any more: whoever stood where we should was killed."""
    line.recv(1)
    os._exit(137)


def tell_ends(lines: dict[int, socket.socket]) -> None:
    """Who ended, and how."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        line = lines.pop(pid)
        say(line, os.waitstatus_to_exitcode(status))
        line.close()


def say(line: socket.socket, number: int) -> None:
    """To whoever asked, if they are still there."""
    with suppress(OSError):
        line.sendall(b"%d\n" % number)


if __name__ == "__main__":
    import_everything()
    warm(sys.argv[1])
