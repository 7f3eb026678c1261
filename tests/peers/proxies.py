"""The server behind nginx, HAProxy and Caddy on loopback, with their default buffering and idle limits of 2 seconds."""

import contextlib
import os
import pathlib
import tempfile
import time

import wire
from harness import Process, Server, free_port, need, until

IDLE = 2
# The silence that a tool keeps: well over the idle limit.
SILENT_MS = 5000

# Each template is all that the proxy is told. Only the idle limits differ from the defaults (60 seconds for nginx, none
# for Caddy; HAProxy's must be set), and Caddy's choice among instances, which is by chance. Buffering, HTTP versions and
# everything else stay as the package ships them.
NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream mcp {{
    {servers}
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://mcp;
      proxy_read_timeout {idle}s;
      proxy_send_timeout {idle}s;
      send_timeout {idle}s;
    }}
  }}
}}
"""

HAPROXY = """
global
  maxconn 100
defaults
  mode http
  {option}
  timeout connect {idle}s
  timeout client {idle}s
  timeout server {idle}s
frontend mcp
  bind 127.0.0.1:{port}
  default_backend mcp
backend mcp
  {servers}
"""

CADDY = """
{{
  admin off
  auto_https off
}}
http://127.0.0.1:{port} {{
  reverse_proxy {servers} {{
    lb_policy round_robin
    transport http {{
      read_timeout {idle}s
      write_timeout {idle}s
    }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(program, *ports):
    servers = "\n    ".join(f"server 127.0.0.1:{port};" for port in ports)
    with _proxy(NGINX, servers, lambda file, folder: [program, "-p", folder, "-e", "stderr", "-c", file]) as port:
        yield port


@contextlib.contextmanager
def haproxy(program, *ports, option=""):
    servers = "\n  ".join(f"server mcp{index} 127.0.0.1:{port}" for index, port in enumerate(ports))
    template = HAPROXY.replace("{option}", option)
    with _proxy(template, servers, lambda file, folder: [program, "-db", "-f", file]) as port:
        yield port


@contextlib.contextmanager
def caddy(program, *ports):
    servers = " ".join(f"127.0.0.1:{port}" for port in ports)
    with _proxy(CADDY, servers, lambda file, folder: [program, "run", "--adapter", "caddyfile", "--config", file]) as port:
        yield port


@contextlib.contextmanager
def _proxy(template, servers, command):
    """Runs a proxy with its configuration in a folder that goes away, and yields its port."""
    with tempfile.TemporaryDirectory(prefix="peers-proxy-") as folder:
        port = free_port()
        file = pathlib.Path(folder) / "config"
        file.write_text(template.format(folder=folder, servers=servers, port=port, idle=IDLE))
        environment = {**os.environ, "HOME": folder, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
        with Process(command(file, folder), env=environment) as process:
            try:
                yield process.serving(port) and port
            except Exception as error:
                if OWN_CLOSE in process.tail():
                    raise ClosedByProxy(str(error)) from error
                raise


class ClosedByProxy(Exception):
    """A check failed because the proxy closed its own connection to the server."""


# What Caddy 2.6 says then. It is a race within it: Go's server cannot read a request's body once it writes the
# response, so a reply that begins before the end of the body was noticed is cut off (golang/go#40747).
OWN_CLOSE = "use of closed network connection"


def again(body):
    """Runs `body`, and anew, at most twice, when the proxy closed its own connection. The detail says so."""
    for closed in range(3):
        try:
            detail = body()
        except ClosedByProxy:
            if closed == 2:
                raise
            continue
        note = f"the proxy closed its own connection before, {closed} of {closed + 1} times" if closed else None
        return ", ".join(part for part in (detail, note) if part)


PROXIES = {"nginx": nginx, "haproxy": haproxy, "caddy": caddy}


def run(report, binary, name, program):
    def start(*ports):
        return PROXIES[name](program, *ports)

    def frames_live():
        with start(server.port) as port:
            arguments = {"name": "slow", "arguments": {"steps": 4, "delayMs": 250}}
            with wire.Exchange(port, "tools/call", arguments, token="p", log="info") as exchange:
                exchange.head()
                need(exchange.status == 200, f"status {exchange.status}")
                kind = exchange.headers.get("content-type", "")
                need(kind.startswith("text/event-stream"), f"content type {kind}")
                seen = [(at, message) for at, message in exchange.frames() if message is not None]
            messages = [message for _, message in seen]
            need(len(seen) == 9, f"instead of 4 times progress and log, and the result: {seen}")
            need(messages[-1]["result"]["content"][0]["text"] == "slow done", f"the last message is {messages[-1]}")
            progress = [(at, m["params"]["progress"]) for at, m in seen if m.get("method") == "notifications/progress"]
            need([value for _, value in progress] == [1, 2, 3, 4], f"progress was {progress}")
            # Sent 250 ms apart; a buffer would hand them out together.
            gaps = [after[0] - before[0] for before, after in zip(progress, progress[1:])]
            need(min(gaps) > 0.1, f"progress came with gaps of {gaps} s")
            need(seen[-1][0] - progress[0][0] > 0.7, "the first frame came only shortly before the result")
        return f"gaps of {min(gaps):.2f} to {max(gaps):.2f} s"

    def outlives(stream):
        with start(server.port) as port:
            begin = time.monotonic()
            result = wire.call(port, "hold", {"ms": SILENT_MS, "stream": stream})
            took = time.monotonic() - begin
            need(took >= SILENT_MS / 1000, f"answered after {took:.1f} s with {result}")
        return f"{took:.1f} s"

    def limit_is_real():
        # Without keep-alives the same call must be cut off, or the checks above prove nothing.
        with Server(binary, "--keep-alive-ms", "60000", "--stream-after-ms", "60000") as quiet, start(quiet.port) as port:
            begin = time.monotonic()
            try:
                result = wire.call(port, "hold", {"ms": SILENT_MS, "stream": True})
            except (wire.Broken, ValueError, OSError) as error:
                took = time.monotonic() - begin
                need(took < SILENT_MS / 1000, f"it lasted {took:.1f} s: {error}")
                return f"cut off after {took:.1f} s"
            need(False, f"it was answered: {result}")

    def hang_up(stream):
        with start(server.port) as port:
            before = wire.held(server.port)
            exchange = wire.Exchange(port, "tools/call", {"name": "hold", "arguments": {"ms": 20000, "stream": stream}})
            if stream:
                exchange.head()
            until(5, lambda: wire.held(server.port)["started"] == before["started"] + 1, "the start of the call")
            exchange.close()
            took = until(
                8, lambda: wire.held(server.port)["cancelled"] == before["cancelled"] + 1, "the handler's cancellation"
            )
            need(wire.held(server.port)["completed"] == before["completed"], "the handler completed")
        return f"after {took:.2f} s"

    def hang_up_at_once():
        # Its default passes a hang-up on only with the next bytes to the client; here there are none to come in time.
        with (
            Server(binary, "--keep-alive-ms", "60000", "--stream-after-ms", "60000") as quiet,
            haproxy(program, quiet.port, option="option abortonclose") as port,
        ):
            exchange = wire.Exchange(port, "tools/call", {"name": "hold", "arguments": {"ms": 20000, "stream": False}})
            until(1, lambda: wire.held(quiet.port)["started"] == 1, "the start of the call")
            exchange.close()
            # Less than what is left of the idle limit, which would end the call, too.
            took = until(0.7, lambda: wire.held(quiet.port)["cancelled"] == 1, "the handler's cancellation")
        return f"after {took:.2f} s"

    def subscription():
        # A subscription is silent for longer than the limit, hears a change, and ends gracefully.
        with start(server.port) as port:
            filter = {"notifications": {"toolsListChanged": True}}
            with wire.Exchange(port, "subscriptions/listen", filter, id=7) as exchange:
                frames = exchange.frames()
                messages = (message for _, message in frames if message is not None)

                def following(what):
                    message = next(messages, None)
                    took = time.monotonic() - exchange.start
                    ended = f"the stream (status {exchange.status}) ended after {took:.2f} s instead of {what}"
                    need(message is not None, ended)
                    return message

                ack = following("its acknowledgement")
                need(ack["method"] == "notifications/subscriptions/acknowledged", f"the first message is {ack}")
                time.sleep(IDLE * 1.5)
                wire.call(port, "touch", {"kind": "tools"})
                change = following("the change")
                need(change["method"] == "notifications/tools/list_changed", f"heard {change}")
                wire.call(port, "close_subscriptions")
                end = following("its result")
                need(end.get("id") == 7 and "result" in end, f"the end is {end}")
                need(next(messages, None) is None, "the stream goes on after its result")

    def round_robin():
        # Nothing is kept between requests: one client's requests may each reach another instance.
        with Server(binary) as one, Server(binary) as two, start(one.port, two.port) as port:
            for turn in range(10):
                with wire.Exchange(port, "server/discover", id=turn) as exchange:
                    answer = exchange.answer()
                need("result" in answer and answer["id"] == turn, f"discover was answered with {answer}")
                wire.call(port, "hold", {"ms": 1, "stream": turn % 2 == 0}, id=f"turn-{turn}")
                wire.call(port, "slow", {"steps": 2, "delayMs": 1}, token=turn)
            counts = [wire.held(instance.port)["completed"] for instance in (one, two)]
            need(sum(counts) == 10, f"the instances served {counts} of 10 calls")
            need(min(counts) > 0, f"one instance served nothing: {counts}")
        return f"{counts[0]} and {counts[1]} of 10 calls"

    def rounds(port):
        """A call in three rounds, each of which brings what the one before it left in `requestState`."""
        params = {"name": "test_input_required_result_multi_round", "arguments": {}}
        answers = []
        for content in ({"name": "Ada"}, {"color": "blue"}, None):
            with wire.Exchange(port, "tools/call", params, capabilities={"elicitation": {}}) as exchange:
                answer = exchange.answer()
            answers.append(answer)
            result = answer.get("result", {})
            if result.get("resultType") != "input_required":
                break
            [key] = result["inputRequests"]
            params = {
                **params,
                "inputResponses": {key: {"action": "accept", "content": content}},
                "requestState": result["requestState"],
            }
        return answers

    def state_travels():
        key = {"EVERYTHING_STATE_KEY": "a key that both instances share, for this test alone"}
        with Server(binary, **key) as one, Server(binary, **key) as two, start(one.port, two.port) as port:
            answers = rounds(port)
            need(len(answers) == 3, f"answered after {len(answers)} rounds: {answers[-1]}")
            need(answers[-1].get("result", {}).get("resultType") == "complete", f"the last answer is {answers[-1]}")
        # Each with its own key, or a state that was never checked would pass, too.
        with Server(binary) as one, Server(binary) as two, start(one.port, two.port) as port:
            answers = rounds(port)
            need(answers[-1].get("error", {}).get("code") == -32602, f"another instance's state: {answers[-1]}")

    def check(what, body):
        report.run(name, what, lambda: again(body))

    with Server(binary, "--keep-alive-ms", "500", "--stream-after-ms", "500") as server:
        check("frames arrive as they are sent", frames_live)
        check(f"a stream that is silent for 5 s outlives an idle limit of {IDLE} s", lambda: outlives(True))
        check(f"a reply that takes 5 s outlives an idle limit of {IDLE} s", lambda: outlives(False))
        check("without keep-alives the idle limit cuts the same call off", limit_is_real)
        check("a client that hangs up cancels a streaming handler", lambda: hang_up(True))
        check("a client that hangs up cancels a silent handler", lambda: hang_up(False))
        if name == "haproxy":
            check("with `option abortonclose` a hang-up is passed on at once", hang_up_at_once)
        check("a subscription outlives the limit, hears a change and ends gracefully", subscription)
        check("two instances in turn serve one client", round_robin)
        check("the state of a call in rounds travels between instances that share a key", state_travels)
