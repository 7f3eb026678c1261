"""A plain HTTP/1.1 client on raw sockets, so that what arrives is seen when it arrives: the moment of every frame."""

import json
import socket
import time

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"


class Broken(Exception):
    """The connection or the response ended where it should not, or nothing came in time."""


class Exchange:
    """One POST and its response. `frames()` yields `(seconds since the request, JSON or None)`, None for a keep-alive."""

    def __init__(self, port, method, params=None, *, id=1, token=None, log=None, capabilities=None, timeout=15):
        meta = {META + "protocolVersion": REVISION, META + "clientCapabilities": capabilities or {}}
        if token is not None:
            meta["progressToken"] = token
        if log is not None:
            meta[META + "logLevel"] = log
        params = {**(params or {}), "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
        head = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {REVISION}",
            f"Mcp-Method: {method}",
            f"Content-Length: {len(body)}",
        ]
        if "name" in params:
            head.append(f"Mcp-Name: {params['name']}")
        self.start = time.monotonic()
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.sendall("\r\n".join([*head, "", ""]).encode() + body)
        self.buffer = b""
        self.status = None
        self.headers = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Hangs up: from the peer's view the client is gone."""
        self.socket.close()

    def _more(self):
        try:
            data = self.socket.recv(65536)
        except TimeoutError:
            raise Broken(f"nothing came for {self.socket.gettimeout()} s") from None
        except OSError as error:
            raise Broken(f"the connection broke: {error}") from None
        self.buffer += data
        return bool(data)

    def _until(self, mark):
        while mark not in self.buffer:
            if not self._more():
                raise Broken(f"the connection ended in mid-response, after {time.monotonic() - self.start:.1f} s")
        found, self.buffer = self.buffer.split(mark, 1)
        return found

    def head(self):
        """Reads the response's head once."""
        if self.status is None:
            lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            self.status = int(lines[0].split(" ")[1])
            for line in lines[1:]:
                name, _, value = line.partition(":")
                self.headers[name.strip().lower()] = value.strip()
        return self

    def _pieces(self):
        """The body's bytes as they arrive, whatever frames them; an end before the announced one is an error."""
        self.head()
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int(self._until(b"\r\n").split(b";")[0], 16)
                while len(self.buffer) < size + 2:
                    if not self._more():
                        raise Broken("the connection ended in mid-chunk")
                piece, self.buffer = self.buffer[:size], self.buffer[size + 2 :]
                if size == 0:
                    return
                yield piece
        elif "content-length" in self.headers:
            left = int(self.headers["content-length"])
            while left:
                if not self.buffer and not self._more():
                    raise Broken("the connection ended in mid-body")
                piece, self.buffer = self.buffer[:left], self.buffer[left:]
                left -= len(piece)
                yield piece
        else:
            while self.buffer or self._more():
                piece, self.buffer = self.buffer, b""
                yield piece

    def body(self):
        return b"".join(self._pieces())

    def frames(self):
        pending = b""
        for piece in self._pieces():
            pending += piece
            while b"\n\n" in pending:
                block, pending = pending.split(b"\n\n", 1)
                data = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
                yield time.monotonic() - self.start, json.loads(b"\n".join(data)) if data else None
        if pending.strip():
            raise Broken(f"the stream ended inside a frame: {pending[:80]!r}")

    def answer(self):
        """The JSON-RPC response, from a JSON body or from the end of a stream."""
        self.head()
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            messages = [message for _, message in self.frames() if message is not None]
            if not messages or ("result" not in messages[-1] and "error" not in messages[-1]):
                raise Broken(f"the stream ended without a response, after {len(messages)} messages")
            return messages[-1]
        return json.loads(self.body())


def call(port, tool, arguments=None, **options):
    """Calls a tool and returns its result; an error is an exception."""
    with Exchange(port, "tools/call", {"name": tool, "arguments": arguments or {}}, **options) as exchange:
        answer = exchange.answer()
    if "result" not in answer:
        raise Broken(f"`{tool}` was answered with {answer}")
    return answer["result"]


def held(port):
    """The server's counters of the `hold` tool."""
    return call(port, "stats")["structuredContent"]["held"]
