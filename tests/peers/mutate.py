"""A reverse proxy that alters the server's JSON-RPC messages: what a server with that fault would send."""

import http.client
import http.server
import json
import threading


def nothing(message):
    """Passes messages through; shows that the proxy itself is no fault."""


def drop_result_type(message):
    if isinstance(message.get("result"), dict):
        message["result"].pop("resultType", None)


def stringify_ids(message):
    if "id" in message:
        message["id"] = str(message["id"])


def drop_cache_hints(message):
    if isinstance(message.get("result"), dict):
        message["result"].pop("ttlMs", None)


def drop_subscription_ids(message):
    meta = message.get("params", {}).get("_meta", {}) if "method" in message else {}
    meta.pop("io.modelcontextprotocol/subscriptionId", None)


def other_error_codes(message):
    if "error" in message:
        message["error"]["code"] = -32603


def drop_server_info(message):
    if isinstance(message.get("result"), dict):
        message["result"].pop("serverInfo", None)


def drop_content(message):
    if isinstance(message.get("result"), dict):
        message["result"].pop("content", None)


def drop_log_level(message):
    if message.get("method") == "notifications/message":
        message["params"].pop("level", None)


class MutatingProxy:
    """Serves on a free port of loopback for the length of its block; `url`."""

    def __init__(self, port, fault):
        class Handler(http.server.BaseHTTPRequestHandler):
            # Bodies without a length end with the connection.
            protocol_version = "HTTP/1.0"

            def do_POST(self):
                self.pass_on(self.rfile.read(int(self.headers.get("content-length", 0))))

            def do_GET(self):
                self.pass_on(b"")

            do_DELETE = do_OPTIONS = do_GET

            def pass_on(self, body):
                upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                try:
                    upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        if name.lower() not in ("connection", "content-length"):
                            upstream.putheader(name, value)
                    upstream.putheader("Content-Length", str(len(body)))
                    upstream.endheaders(body)
                    self.answer(upstream.getresponse())
                except OSError:
                    pass  # one of the two sides is gone; closing tells the other
                finally:
                    upstream.close()

            def answer(self, response):
                self.send_response(response.status)
                for name, value in response.getheaders():
                    if name.lower() not in ("connection", "content-length", "transfer-encoding", "date", "server"):
                        self.send_header(name, value)
                self.end_headers()
                if "event-stream" in response.getheader("content-type", ""):
                    # Line by line as they come.
                    for line in response:
                        if line.startswith(b"data:"):
                            line = b"data: " + altered(line[5:]) + b"\n"
                        self.wfile.write(line)
                        self.wfile.flush()
                else:
                    self.wfile.write(altered(response.read()))

            def log_message(self, *_):
                pass

        def altered(text):
            try:
                message = json.loads(text)
            except ValueError:
                return text.rstrip(b"\n")
            fault(message)
            return json.dumps(message).encode()

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that hung up is no news

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/mcp"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
