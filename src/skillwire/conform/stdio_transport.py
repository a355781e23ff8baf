"""The way to a server that is a process: lines of JSON on its stdin and stdout, with bounds (B1, B2)."""

from __future__ import annotations

import json
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from skillwire.client.pipes import each_line, running
from skillwire.client.shapes import as_object
from skillwire.conform.http_transport import Reply, answer_to, is_answer
from skillwire.errors import SkillwireError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from skillwire.client.meter import Meter
    from skillwire.client.pipes import Child
    from skillwire.client.servers import CommandServer
    from skillwire.conform.evidence import Message

_AHEAD = 64  # lines that are kept while nobody waits for one
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def open_pipe_line(place: CommandServer, meter: Meter) -> AsyncGenerator[PipeLine]:
    """Start the process, and end it with the block."""
    async with running(place.command, place.env, place.cwd, meter) as child:
        send, receive = anyio.create_memory_object_stream[bytes](_AHEAD)
        async with anyio.create_task_group() as reading:
            reading.start_soon(_read, child, send, meter)
            try:
                yield PipeLine(child, receive, meter)
            finally:
                receive.close()
                reading.cancel_scope.cancel()


async def _read(child: Child, send: MemoryObjectSendStream[bytes], meter: Meter) -> None:
    try:
        async with send, aclosing(each_line(child.stdout, meter)) as lines:
            async for line in lines:
                await send.send(line)
    except (SkillwireError, *_GONE):  # a bound, which the meter remembers; or nobody listens any more
        return


class PipeLine:
    """One server's process. Requests are made one after another."""

    def __init__(self, child: Child, lines: MemoryObjectReceiveStream[bytes], meter: Meter) -> None:
        self._child = child
        self._lines = lines
        self._meter = meter
        self._abandoned: set[Any] = set()  # ids of requests whose answers may still come
        self.noise = ""  # the first line on stdout that is no message

    async def ask(self, message: Message, headers: Mapping[str, str]) -> Reply:  # noqa: ARG002 - HTTP's alone
        """Write the request, and the next answer that is not an older request's."""
        self._abandoned.add(message.get("id"))
        try:
            await self._send(message)
            while True:
                line = await self._lines.receive()
                found = self._message(line)
                if found is None:
                    if b'"jsonrpc"' in line:
                        return Reply(problem="a message that is not JSON")
                    continue
                if not is_answer(found):
                    back = answer_to(found)
                    if back is not None:
                        await self._send(back)
                elif not self._is_late(found, message):
                    self._abandoned.discard(message.get("id"))
                    return Reply(found)
        except (*_GONE, anyio.EndOfStream):
            return Reply(problem=self._why(), is_lost=True)

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:  # noqa: ARG002
        """Write the notification."""
        try:
            await self._send(message)
        except _GONE:
            return

    async def _send(self, message: Message) -> None:
        await self._child.stdin.send(json.dumps(message).encode() + b"\n")

    def _message(self, line: bytes) -> Any:
        """What the line says; ``None`` for one that says nothing to us."""
        if not line.strip():
            return None
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            self.noise = self.noise or line[:200].decode(errors="replace")
            return None

    def _is_late(self, found: Any, message: Message) -> bool:
        said: object = as_object(found).get("id")
        return said != message.get("id") and isinstance(said, int) and said in self._abandoned

    def _why(self) -> str:
        failure = self._meter.take_failure()
        if failure is not None:
            return failure.message
        words = " ".join(self._meter.last_words.split())[-300:]
        return "the process ended" + (f"; its last words: {words}" if words else "")
