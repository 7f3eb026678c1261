"""The Python SDK's client of the earlier revisions (PyPI `mcp` 1.x) against a running server.

usage: python python_sdk_1.py URL
"""

import asyncio
import contextlib
import sys
import time
from datetime import timedelta

import _support as support
from _support import check, need, spread, until
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import EmptyResult, Request
from pydantic import AnyUrl

REVISION = "2025-11-25"


@contextlib.asynccontextmanager
async def connected(url, **options):
    """A session, not yet initialized, whose connections end with the block."""
    async with streamable_http_client(url) as (read, write, _), ClientSession(read, write, **options) as session:
        yield session


async def failure(call):
    """The error that the server answers with."""
    try:
        answer = await call
    except McpError as error:
        return error.error
    raise support.Unmet(f"the answer was {answer}")


async def main(url):
    logs = []

    async def on_log(params):
        logs.append((time.monotonic(), params.level))

    async with contextlib.AsyncExitStack() as stack:
        session = await stack.enter_async_context(connected(url, logging_callback=on_log))

        async def held():
            return (await session.call_tool("stats", {})).structuredContent["held"]

        async with check("agrees on the earlier revision"):
            agreed = await session.initialize()
            need(agreed.protocolVersion == REVISION, f"negotiated {agreed.protocolVersion}")
            need(agreed.serverInfo.name, "the server did not say who it is")
            need(agreed.capabilities.tools is not None, f"its capabilities are {agreed.capabilities}")
            tools = (await session.list_tools()).tools
            need(any(tool.name == "slow" for tool in tools), "tools/list has no `slow`")

        async with check("is answered a ping"):
            await session.send_ping()

        async with check("progress and logs arrive while the tool runs, then the result"):
            progress = []

            async def on_progress(value, total, message):
                progress.append((time.monotonic(), value))

            await session.set_logging_level("info")
            result = await session.call_tool("slow", {"steps": 4, "delayMs": 200}, timedelta(seconds=10), on_progress)
            end = time.monotonic()
            need([value for _, value in progress] == [1, 2, 3, 4], f"progress was {progress}")
            need(all(level == "info" for _, level in logs), f"logs were {logs}")
            spread("progress", [at for at, _ in progress], end, 4)
            spread("logs", [at for at, _ in logs], end, 4)
            need(result.content[0].text == "slow done", f"result was {result}")

        async with check("reads structured content"):
            value = {"list": [1, "zwei", None], "text": "drei\u2028vier"}
            read = (await session.call_tool("echo", {"value": value})).structuredContent
            need(read == {"value": value}, f"it read {read}")

        async with check("reads the codes of errors"):
            custom = {"code": -32050, "message": "out of paper", "data": {"tray": 2}}
            failed = await failure(session.call_tool("fail", custom))
            need(failed.code == -32050 and failed.data == {"tray": 2}, f"a tool's: {failed}")
            unknown = await failure(session.send_request(Request(method="no/such", params=None), EmptyResult))
            need(unknown.code == -32601, f"an unknown method's: {unknown}")
            missing = await failure(session.read_resource(AnyUrl("test://no-such")))
            need(missing.code == -32002, f"a missing resource's: {missing}")

        # A task that is cancelled keeps its connection, and says nothing to the server: what stops the work is to close.
        for stream in (True, False):
            async with check(f"closes during a {'streaming' if stream else 'silent'} call and the work stops"):
                before = await held()

                async def started():
                    return (await held())["started"] == before["started"] + 1

                async def cancelled():
                    return (await held())["cancelled"] == before["cancelled"] + 1

                async with connected(url) as other:
                    await other.initialize()
                    running = asyncio.create_task(other.call_tool("hold", {"ms": 20_000, "stream": stream}))
                    await until(5, started, "the start of the call")
                    running.cancel()
                await asyncio.wait([running], timeout=5)
                need(running.done(), "the call did not end")
                await until(5, cancelled, "the handler's cancellation")
                need((await held())["completed"] == before["completed"], "the handler completed")

        async with check("closes"):
            await stack.aclose()


asyncio.run(main(sys.argv[1]))
sys.exit(1 if support.failed else 0)
