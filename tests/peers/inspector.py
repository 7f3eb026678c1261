"""The MCP Inspector's command lines: the one-shot CLI (`--protocol-era modern`) and `mcpdo`, which holds a connection.

The CLI prints results only, so what arrives live is watched through `mcpdo logging/tail` and `mcpdo resources/subscribe`.
The inspector has no command that ends or reports a subscription; the graceful end is seen from the server's counters.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import wire
from harness import Server, need, until

WATCHED = "test://watched-resource"


class Lines:
    """A running command whose output lines are kept with the moment they came."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.lines = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def matching(self, pattern):
        return [(at, line) for at, line in self.lines if re.search(pattern, line)]

    def text(self):
        return " ".join(line for _, line in self.lines)[-600:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def run(report, binary, node, modules):
    clients = modules / "@modelcontextprotocol/inspector/clients"
    with Server(binary) as server, tempfile.TemporaryDirectory(prefix="peers-inspector-") as home:
        # Its catalogue, logs, secrets and daemon stay in a folder that goes away.
        environment = {
            **os.environ,
            "HOME": home,
            "MCP_INSPECTOR_SECRET_STORE": "memory",
            "NO_COLOR": "1",
        }
        cli = [node, clients / "launcher/build/index.js", "--cli", server.url, "--transport", "http"]
        cli = [str(part) for part in [*cli, "--protocol-era", "modern", "--format", "json"]]
        do = [str(node), str(clients / "mcpdo/build/mcp-bin.js")]

        def ask(command):
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
            need(done.returncode == 0, f"exit status {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
            return done.stdout

        def held():
            return wire.held(server.port)

        def discovers():
            tools = json.loads(ask([*cli, "--method", "tools/list"]))["result"]["tools"]
            need(any(tool["name"] == "slow" for tool in tools), "tools/list has no `slow`")

        def result():
            text = ask([*cli, "--method", "tools/call", "--tool-name", "slow", "--tool-arg", "steps=2"])
            need(json.loads(text)["result"]["content"][0]["text"] == "slow done", f"the result was {text}")

        def cancels(stream):
            before = held()
            arguments = json.dumps({"ms": 20000, "stream": stream})
            command = [*cli, "--method", "tools/call", "--tool-name", "hold", "--tool-args-json", arguments]
            with Lines(command, environment) as call:
                until(15, lambda: held()["started"] == before["started"] + 1, "the start of the call")
                call.process.send_signal(signal.SIGINT)
                until(5, lambda: held()["cancelled"] == before["cancelled"] + 1, "the handler's cancellation")
            need(held()["completed"] == before["completed"], "the handler completed")

        report.run("inspector", "discovers the revision and lists the tools", discovers)
        report.run("inspector", "gets the result of a call", result)
        for stream in (True, False):
            kind = "streaming" if stream else "silent"
            report.run(
                "inspector", f"cancels a {kind} call in flight and the work stops", lambda stream=stream: cancels(stream)
            )

        for line in ask([*do, "private"]).splitlines():
            # A daemon of our own: `export NAME='VALUE'` lines.
            match = re.match(r"export (\w+)=['\"]?([^'\"]+?)['\"]?;?$", line.strip())
            if match:
                environment[match[1]] = match[2]
        peer = [*do, "--connection", "peer"]

        def connects():
            ask([*peer, "connect", "--era", "modern", "--transport", "http", "--server-url", server.url])
            listed = json.loads(ask([*do, "--format", "json", "connections/list"]))["connections"]
            need(listed and listed[0]["protocolEra"] == "modern", f"the connections are {listed}")

        def live_logs():
            with Lines([*peer, "logging/tail"], environment) as tail:
                # It says nothing until a log comes: probe calls until one does, then look at one call alone.
                def ready():
                    ask([*peer, "tools/call", "slow", "steps:=1", "delayMs:=1"])
                    return tail.matching(r"\[info\]")

                until(15, ready, "seeing a log")
                time.sleep(0.5)
                seen = len(tail.matching(r"\[info\]"))
                ask([*peer, "tools/call", "slow", "steps:=4", "delayMs:=200"])
                end = time.monotonic()
                times = [at for at, _ in tail.matching(r"\[info\]")[seen:]]
                need(len(times) == 4, f"{len(times)} logs instead of 4: {tail.text()}")
                need(end - times[0] >= 0.4, f"logs came {end - times[0]:.2f} s before the end: in one lump")
                need(times[3] - times[0] >= 0.3, f"logs came within {times[3] - times[0]:.2f} s: in one lump")

        def hears_updates():
            with Lines([*peer, "--format", "json", "resources/subscribe", WATCHED], environment) as events:
                until(15, lambda: events.matching(r'"subscribed"'), f"subscribing ({events.text()})")
                until(
                    10,
                    lambda: ask([*peer, "tools/call", "touch"]) and events.matching(r'"resources/updated"'),
                    "hearing the update",
                )

        def ends():
            need(wire.call(server.port, "stats")["structuredContent"]["subscriptions"] > 0, "it holds no subscription")
            ask([*peer, "tools/call", "close_subscriptions"])
            tools = ask([*peer, "--format", "json", "tools/call", "slow", "steps:=1"])
            need("slow done" in tools, f"after the end of its subscriptions a call was answered with {tools}")

        report.run("inspector", "holds a connection of the modern era", connects)
        report.run("inspector", "logs arrive while the tool runs", live_logs)
        report.run("inspector", "hears an update of a resource", hears_updates)
        report.run("inspector", "goes on after the server ended its subscriptions", ends)
        report.run("inspector", "ends its own process", lambda: ask([*do, "daemon", "stop"]) and None)
        if "MCP_INSPECTOR_DAEMON_DIR" in environment:
            shutil.rmtree(environment["MCP_INSPECTOR_DAEMON_DIR"], ignore_errors=True)
