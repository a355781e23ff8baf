"""The stdio transport with bounds: a server as a child process (B1, B2).

The SDK's own stdio transport keeps an unfinished line of any length in memory, and copies it for each chunk. Here
a line has a bound. The last output on stderr is kept for error messages.

The process runs in a new session and is ended as the protocol requires: its stdin is closed, then it gets SIGTERM,
then SIGKILL, with all its children.
"""

from __future__ import annotations

import os
import signal
from contextlib import aclosing, asynccontextmanager, suppress
from subprocess import PIPE
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId, jsonrpc_message_adapter
from pydantic_core import from_json

from skillwire.client.bounds import LISTEN
from skillwire.client.servers import program_of
from skillwire.errors import NotFoundError, ProtocolError, SkillwireError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from anyio.abc import ByteReceiveStream, ByteSendStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from skillwire.client.bounds import Meter

    _Incoming: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
    Streams: TypeAlias = tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
    ]

_GRACE_SECONDS = 2.0
_LAST_OUTPUT_BYTES = 2000
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


@asynccontextmanager
async def open_stdio(
    command: Sequence[str], env: Mapping[str, str], cwd: str | None, meter: Meter
) -> AsyncGenerator[Streams]:
    """Start ``command`` and exchange the SDK's messages with it."""
    incoming_in, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_out = anyio.create_memory_object_stream[SessionMessage](0)
    awaited: set[RequestId] = set()
    try:
        async with running(command, env, cwd, meter) as child, anyio.create_task_group() as tasks:
            tasks.start_soon(_read_messages, child.stdout, incoming_in, awaited, meter)
            tasks.start_soon(_write_lines, child.stdin, outgoing_out, incoming_in, awaited)
            try:
                yield incoming, outgoing
            finally:
                tasks.cancel_scope.cancel()  # stdout may have one reader, and `_end` reads it next
    finally:
        for stream in (incoming, incoming_in, outgoing, outgoing_out):
            stream.close()


@asynccontextmanager
async def running(
    command: Sequence[str], env: Mapping[str, str], cwd: str | None, meter: Meter
) -> AsyncGenerator[Child]:
    """Run ``command`` for the duration of the block, with ``env`` and few variables of our environment."""
    child = await _start(command, {**get_default_environment(), **env}, cwd)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_keep_last_output, child, meter)
        try:
            yield child
        finally:
            with anyio.CancelScope(shield=True):  # otherwise the process would outlive us
                await _end(child, meter.limits.last_output_seconds)
            tasks.cancel_scope.cancel()


class Child(NamedTuple):
    """A process and the pipes to it."""

    process: Process
    stdin: ByteSendStream
    stdout: ByteReceiveStream
    stderr: ByteReceiveStream
    silent: anyio.Event  # stderr is not read any more, usually because it ended


async def _start(command: Sequence[str], env: dict[str, str], cwd: str | None) -> Child:
    try:
        process = await anyio.open_process(
            list(command), env=env, cwd=cwd, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a valid command"
        raise NotFoundError(
            "command-failed",
            f"{program_of(command)!r:.200} cannot be started: {reason}",
            "check the command and its folder; write each argument as a separate item",
        ) from error
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise AssertionError("a process started with pipes has no pipes")
    return Child(process, stdin, stdout, stderr, anyio.Event())


async def each_line(stdout: ByteReceiveStream, meter: Meter) -> AsyncGenerator[bytes]:
    """The lines that a process writes, counted and bounded, until the process ends."""
    line, values = bytearray(), meter.values()
    with suppress(*_GONE):
        async for chunk in stdout:
            meter.count(len(chunk))
            for number, part in enumerate(chunk.split(b"\n")):
                if number:
                    yield bytes(line)
                    line, values = bytearray(), meter.values()
                line += part
                meter.check_message(len(line))
                meter.check_values(values, part)


async def _read_messages(
    stdout: ByteReceiveStream, send: _Incoming, awaited: set[RequestId], meter: Meter
) -> None:
    # The meter keeps our own errors. The others mean that the connection was closed.
    with send, suppress(SkillwireError, *_GONE):
        async with aclosing(each_line(stdout, meter)) as lines:
            async for line in lines:
                await _deliver(line, send, awaited, meter)


async def _deliver(line: bytes, send: _Incoming, awaited: set[RequestId], meter: Meter) -> None:
    """Deliver one message. Only a response may be large; if none is expected, it is not even decoded (B1)."""
    if b'"jsonrpc"' not in line:
        return  # some servers print other text to stdout
    values = meter.values()
    values.add(line)
    is_notice = meter.is_notice(len(line), values)
    if not awaited and not is_notice:
        raise meter.unrequested()
    try:
        # In two steps: the adapter alone would decode the text once for each member of its union.
        message = jsonrpc_message_adapter.validate_python(from_json(line), by_name=False)
    except ValueError as error:  # it may be a response, so the request should fail soon
        raise meter.stop(
            ProtocolError(
                "message-invalid",
                "the server sent a message that is not JSON-RPC",
                "the server must be fixed",
                rule="B1",
            )
        ) from error
    if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in awaited:
        awaited.discard(message.id)
    elif not is_notice:
        raise meter.unrequested()
    await send.send(SessionMessage(message))


async def _write_lines(
    stdin: ByteSendStream,
    receive: MemoryObjectReceiveStream[SessionMessage],
    send: _Incoming,
    awaited: set[RequestId],
) -> None:
    try:
        async with receive:
            async for item in receive:
                if isinstance(item.message, JSONRPCRequest) and item.message.method != LISTEN:
                    awaited.add(item.message.id)
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stdin.send(text.encode() + b"\n")
    except _GONE:
        send.close()  # tells the session that the process is gone


async def _keep_last_output(child: Child, meter: Meter) -> None:
    output, meter.last_output = b"", ""
    try:
        with suppress(*_GONE):
            async for chunk in child.stderr:
                output = (output + chunk)[-_LAST_OUTPUT_BYTES:]
                meter.last_output = output.decode(errors="replace")
    finally:
        child.silent.set()


async def _end(child: Child, last_output_seconds: float) -> None:
    process = child.process
    with suppress(*_GONE):
        await child.stdin.aclose()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
        with anyio.move_on_after(_GRACE_SECONDS):
            await _drained(child.stdout)
            await process.wait()
            break
    with suppress(ProcessLookupError, PermissionError):  # its remaining children
        os.killpg(process.pid, signal.SIGKILL)
    with anyio.move_on_after(last_output_seconds):
        await child.silent.wait()
    with suppress(*_GONE):
        await process.aclose()


async def _drained(stream: ByteReceiveStream) -> None:
    """Read until the end: a process that is blocked in a write does not notice that its stdin was closed."""
    with suppress(*_GONE):
        while True:
            await stream.receive()
