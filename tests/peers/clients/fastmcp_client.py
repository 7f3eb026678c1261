"""FastMCP's client (PyPI `fastmcp-slim[client]`) against a running server. Usage: python fastmcp_client.py URL"""

import asyncio
import sys
import time

import _support as support
from _support import REVISION, WATCHED, check, need, spread, until
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
    listen,
)

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


async def main(url):
    logs = []

    async def on_log(message):
        logs.append((time.monotonic(), message.level))

    async with Client(StreamableHttpTransport(url), mode="auto", log_handler=on_log) as client:

        async def stats():
            return (await client.call_tool_mcp("stats", {})).structured_content

        async with check("discovers the revision"):
            need(client.protocol_version == REVISION, f"negotiated {client.protocol_version}")
            tools = await client.list_tools()
            need(any(tool.name == "slow" for tool in tools), "tools/list has no `slow`")

        async with check("progress and logs arrive while the tool runs, then the result"):
            progress = []

            async def on_progress(value, total, message):
                progress.append((time.monotonic(), value))

            result = await client.call_tool(
                "slow", {"steps": 4, "delayMs": 200}, progress_handler=on_progress, timeout=10, meta={LOG_LEVEL: "info"}
            )
            end = time.monotonic()
            need([value for _, value in progress] == [1, 2, 3, 4], f"progress was {progress}")
            need(all(level == "info" for _, level in logs), f"logs were {logs}")
            spread("progress", [at for at, _ in progress], end, 4)
            spread("logs", [at for at, _ in logs], end, 4)
            need(result.content[0].text == "slow done", f"result was {result}")

        # This client has no `listen` of its own; its session is the SDK's, whose driver takes it.
        async with check("listens and hears four kinds of change with an id of its own type"):
            heard = {}
            async with listen(
                client.session,
                tools_list_changed=True,
                prompts_list_changed=True,
                resources_list_changed=True,
                resource_subscriptions=[WATCHED],
            ) as subscription:
                need(str(subscription.subscription_id).startswith("listen-"), f"id {subscription.subscription_id!r}")
                await client.call_tool_mcp("touch", {})
                while len(heard) < 4:
                    event = await asyncio.wait_for(subscription.__anext__(), 5)
                    heard[type(event)] = event
                need(
                    set(heard) == {ToolsListChanged, PromptsListChanged, ResourcesListChanged, ResourceUpdated},
                    f"heard {heard}",
                )
                need(str(heard[ResourceUpdated].uri) == WATCHED, f"heard {heard[ResourceUpdated]}")

        async with check("reads the server's end of the subscription as graceful"):
            async with listen(client.session, tools_list_changed=True) as subscription:
                await client.call_tool_mcp("close_subscriptions", {})
                async with asyncio.timeout(5):
                    async for event in subscription:
                        raise support.Unmet(f"heard {event} instead of the end")

        for stream in (True, False):
            kind = "streaming" if stream else "silent"
            async with check(f"cancels a {kind} call in flight and the work stops"):
                before = (await stats())["held"]
                running = asyncio.create_task(client.call_tool("hold", {"ms": 20_000, "stream": stream}))

                async def started():
                    return (await stats())["held"]["started"] == before["started"] + 1

                async def cancelled():
                    return (await stats())["held"]["cancelled"] == before["cancelled"] + 1

                await until(5, started, "the start of the call")
                running.cancel()
                await asyncio.wait([running], timeout=5)
                need(running.done(), "the call did not end")
                await until(5, cancelled, "the handler's cancellation")
                need((await stats())["held"]["completed"] == before["completed"], "the handler completed")


asyncio.run(main(sys.argv[1]))
sys.exit(1 if support.failed else 0)
