"""The TypeScript SDK's client in a web page, in a real browser, against a running server.

usage: browser.py URL     with PEERS_NPM (where npm installed the client), PEERS_NODE and PEERS_BROWSER in the environment

It bundles `page.mjs`, serves it under two names, and prints the lines that the page says.
"""

import http.server
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import Process  # noqa: E402

DOCUMENT = b'<!doctype html><meta charset="utf-8"><title>MCP</title><body><script type="module" src="/page.js"></script>'
# No request of its own leaves the browser.
QUIET = [
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
FOREIGN = "elsewhere.example"


class Browser(Process):
    """A browser that ends with its block, and with this script, however that ends.

    What Debian calls the browser is a script that starts it, so a signal to that would leave the browser behind. With
    `--remote-debugging-pipe` the browser ends when the pipe at descriptor 3 does, which is this script's to close.
    """

    def __init__(self, command):
        shell = ["sh", "-c", 'exec "$0" "$@" 3<&0 4>/dev/null', *command, "--remote-debugging-pipe"]
        super().__init__(shell, stdin=subprocess.PIPE, start_new_session=True)

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def bundle(folder):
    """One file of the page and all that it imports."""
    # Beside the installed packages, where their names are found.
    source = folder / "page"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    for name in ("page.mjs", "list.mjs", "_support.mjs"):
        shutil.copy(HERE / name, source / name)
    cli = folder / "node_modules/rolldown/bin/cli.mjs"
    made = source / "page.js"
    command = [os.environ["PEERS_NODE"], cli, source / "page.mjs", "--file", made, "--format", "esm"]
    command += ["--platform", "browser", "--no-code-splitting"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0 or not made.exists():
        sys.exit(f"rolldown could not bundle the page: {done.stdout}")
    return made.read_bytes()


class Pages(http.server.ThreadingHTTPServer):
    """Serves the page, and takes down what it says: lines, then None, and why it ended if it did so early."""

    daemon_threads = True

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"/": ("text/html", DOCUMENT), "/page.js": ("text/javascript", script)}
        self.said = queue.Queue()
        self.broken = ""

    def under(self, host, **query):
        return f"http://{host}:{self.server_port}/?{urllib.parse.urlencode(query)}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        kind, content = self.server.files.get(urllib.parse.urlsplit(self.path).path, (None, b""))
        self._answer(200 if kind else 404, kind or "text/plain", content)

    def do_POST(self):
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        if self.path == "/said":
            self.server.said.put(text)
        elif self.path == "/end":
            self.server.broken = text
            self.server.said.put(None)
        self._answer(204, "text/plain", b"")

    def _answer(self, status, kind, content):
        self.send_response(status)
        self.send_header("content-type", kind)
        if status != 204:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def main():
    server = sys.argv[1]
    pages = Pages(bundle(pathlib.Path(os.environ["PEERS_NPM"])))
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    control = f"http://127.0.0.1:{pages.server_port}/control"
    foreign = pages.under(FOREIGN, role="foreign", server=server, control=control)
    page = pages.under("127.0.0.1", role="allowed", server=server, foreign=foreign)
    failed = False
    with tempfile.TemporaryDirectory(prefix="peers-browser-", ignore_cleanup_errors=True) as profile:
        command = [
            os.environ["PEERS_BROWSER"],
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            *QUIET,
            f"--user-data-dir={profile}",
            f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1",
            page,
        ]
        with Browser(command) as browser:
            try:
                while line := pages.said.get(timeout=40):
                    failed |= not line.startswith("ok - ")
                    print(line, flush=True)
            except queue.Empty:
                sys.exit(f"the page said nothing for 40 s; the browser said: {browser.tail()}")
    if pages.broken:
        sys.exit(f"the page ended early: {pages.broken}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
