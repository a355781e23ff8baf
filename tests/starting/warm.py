"""Imports what ``skillwire`` needs, then forks whenever it is asked to, until its input ends."""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import termios
import threading
import traceback
from contextlib import suppress
from typing import Any

import skillwire
from skillwire.cli import main

# Need packages that users may not have; is not to be imported.
_LEFT_OUT = ("skillwire.adapters.", "skillwire.server.fastmcp_provider", "skillwire.__main__")


def import_everything(*modules: str) -> None:
    """What every fork has at once."""
    for module in pkgutil.walk_packages(skillwire.__path__, "skillwire."):
        if not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)
    for name in modules:
        importlib.import_module(name)


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
                if pid is None:
                    line.close()
                    continue
                lines[pid] = line
                say(line, pid)


def fork(line: socket.socket, listener: socket.socket) -> int | None:
    """A child that becomes what was asked for; none if the caller was killed before it had asked."""
    pipes: list[int] = []
    try:
        request = receive(line, pipes)
        if request is None:
            return None
        pid = os.fork()
        if pid == 0:
            listener.close()
            become(request, pipes, line)
        return pid
    finally:
        for pipe in pipes:
            os.close(pipe)


def receive(line: socket.socket, pipes: list[int]) -> dict[str, Any] | None:
    """The request, once it is complete. Its file descriptors are added to ``pipes``."""
    try:
        data, received, _, _ = socket.recv_fds(line, 65536, 3)
        pipes += received
        head, found, asked = data.partition(b"\n")
        while found and len(asked) < int(head):
            data = line.recv(65536)
            if not data:
                return None
            asked += data
    except OSError:
        return None
    return json.loads(asked) if found else None


def become(asked: dict[str, Any], pipes: list[int], line: socket.socket) -> None:
    """Be ``skillwire``, as a process that was started as one."""
    code = 70
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C is for this process
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        threading.Thread(target=end_with, args=(line,), daemon=True).start()
        gc.unfreeze()
        if asked["words"][:1] == ["--python"]:
            run_python(asked["words"][1:])
            code = 0
        else:
            sys.argv = ["skillwire", *asked["words"]]
            code = main.main() or 0
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
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


def run_python(words: list[str]) -> None:
    """What ``python WORDS`` does, for a script or ``-c``."""
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


def end_with(line: socket.socket) -> None:
    """The process that stands for this one was killed: end as it did, with every child."""
    line.recv(1)
    os.killpg(0, signal.SIGKILL)


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
    import_everything(*sys.argv[2:])
    warm(sys.argv[1])
