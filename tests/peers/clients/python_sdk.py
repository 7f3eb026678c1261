"""The Python SDK's client (PyPI `mcp`) against a running server. Usage: python python_sdk.py URL"""

import asyncio
import sys
import time

import _support as support
from _support import REVISION, WATCHED, check, need, spread, until
from mcp import Client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged


async def main(url):
    logs = []

    async def on_log(params):
        logs.append((time.monotonic(), params.level))

    # Under a pinned version this client would ask nothing: "auto" sends `server/discover`, and what it found is checked.
    async with Client(url, mode="auto", log_level="info", logging_callback=on_log) as client:

        async def stats():
            return (await client.call_tool("stats", {})).structured_content

        async with check("discovers the revision"):
            need(client.protocol_version == REVISION, f"negotiated {client.protocol_version}")
            need(client.server_info is not None and client.server_info.name, "the server did not say who it is")
            tools = (await client.list_tools()).tools
            need(any(tool.name == "slow" for tool in tools), "tools/list has no `slow`")

        async with check("progress and logs arrive while the tool runs, then the result"):
            progress = []

            async def on_progress(value, total, message):
                progress.append((time.monotonic(), value))

            result = await client.call_tool("slow", {"steps": 4, "delayMs": 200}, 10, on_progress)
            end = time.monotonic()
            need([value for _, value in progress] == [1, 2, 3, 4], f"progress was {progress}")
            need(all(level == "info" for _, level in logs), f"logs were {logs}")
            spread("progress", [at for at, _ in progress], end, 4)
            spread("logs", [at for at, _ in logs], end, 4)
            need(result.content[0].text == "slow done", f"result was {result}")

        async with check("listens and hears four kinds of change with an id of its own type"):
            heard = {}
            async with client.listen(
                tools_list_changed=True,
                prompts_list_changed=True,
                resources_list_changed=True,
                resource_subscriptions=[WATCHED],
            ) as subscription:
                # Its ids are strings (`listen-N`): events stamped with anything else never reach this iterator.
                need(str(subscription.subscription_id).startswith("listen-"), f"id {subscription.subscription_id!r}")
                need(
                    subscription.honored.resource_subscriptions == [WATCHED],
                    f"honoured filter {subscription.honored}",
                )
                await client.call_tool("touch", {})
                while len(heard) < 4:
                    event = await asyncio.wait_for(subscription.__anext__(), 5)
                    heard[type(event)] = event
                need(
                    set(heard) == {ToolsListChanged, PromptsListChanged, ResourcesListChanged, ResourceUpdated},
                    f"heard {heard}",
                )
                need(str(heard[ResourceUpdated].uri) == WATCHED, f"heard {heard[ResourceUpdated]}")

        async with check("reads the server's end of the subscription as graceful"):
            async with client.listen(tools_list_changed=True) as subscription:
                await client.call_tool("close_subscriptions", {})
                # A loss raises SubscriptionLost; only the completion result ends the loop.
                async with asyncio.timeout(5):
                    async for event in subscription:
                        raise support.Unmet(f"heard {event} instead of the end")

        async with check("ends a subscription of its own accord"):
            async with client.listen(tools_list_changed=True):
                before = (await stats())["subscriptions"]

            async def forgotten():
                return (await stats())["subscriptions"] == before - 1

            await until(5, forgotten, "the server's forgetting the subscription")

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
                need(running.cancelled(), "the call was not cancelled")
                await until(5, cancelled, "the handler's cancellation")
                need((await stats())["held"]["completed"] == before["completed"], "the handler completed")


asyncio.run(main(sys.argv[1]))
sys.exit(1 if support.failed else 0)
