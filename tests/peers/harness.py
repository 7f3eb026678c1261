"""What every peer's checks stand on: the server process, free ports, and the report."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

LISTENING = re.compile(r"^listening on (http://(\S+):(\d+)/mcp)\s*$")


class Report:
    """Prints one line per check as it happens and counts."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, peer, name, ok, detail=""):
        text = f"{peer}: {name}" + (f" ({detail})" if detail else "")
        print(f"{'ok  ' if ok else 'FAIL'} {text}", flush=True)
        if ok:
            self.passed += 1
        else:
            self.failed += 1
        return ok

    def run(self, peer, name, body):
        """Runs `body`; what it returns is the detail, what it raises is the failure."""
        try:
            detail = body()
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            return self.check(peer, name, False, reason)
        return self.check(peer, name, True, detail or "")


class Failed(Exception):
    """A condition of a check did not hold."""


def need(condition, message):
    if not condition:
        raise Failed(message)


def until(seconds, probe, what):
    """Asks until `probe` holds, and returns how long that took."""
    start = time.monotonic()
    while not probe():
        need(time.monotonic() - start < seconds, f"{what} did not happen within {seconds} s")
        time.sleep(0.05)
    return time.monotonic() - start


def free_port():
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.5).close()
        return True
    except OSError:
        return False


class Process:
    """A process that ends with its block, whatever happens; its output is in `log`."""

    def __init__(self, command, **options):
        self.name = pathlib.Path(str(command[0])).name
        self.log = tempfile.NamedTemporaryFile(prefix=f"peers-{self.name}-", suffix=".log")
        self.process = subprocess.Popen(
            [str(part) for part in command], stdout=options.pop("stdout", self.log), stderr=self.log, **options
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def tail(self):
        text = pathlib.Path(self.log.name).read_text(errors="replace").strip()
        return text[-2000:] or "(it said nothing)"

    def stop(self):
        """Asks it to end, insists after 5 seconds, and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def serving(self, port, seconds=10):
        """Waits until it accepts connections on a port."""
        end = time.monotonic() + seconds
        while not accepts(port):
            status = self.process.poll()
            need(status is None, f"{self.name} ended with status {status}: {self.tail()}")
            need(time.monotonic() < end, f"{self.name} does not listen on port {port}: {self.tail()}")
            time.sleep(0.05)
        return self


class Server(Process):
    """The server under test on a free port of loopback: `url`, `port`."""

    def __init__(self, binary, *arguments, **environment):
        super().__init__(
            [binary, "--addr", "127.0.0.1:0", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        found = threading.Event()
        self.url = None

        def read():
            # Its output is read to its end, so that it never waits for us.
            for line in self.process.stdout:
                match = LISTENING.match(line)
                if match and self.url is None:
                    self.url, self.port = match[1], int(match[3])
                    found.set()
            found.set()

        threading.Thread(target=read, daemon=True).start()
        found.wait(20)
        if self.url is None:
            self.stop()
            raise Failed(f"{binary} did not print `listening on http://ADDR/mcp`: {self.tail()}")


def script(report, peer, command, expected, timeout=120, **options):
    """Runs a client script, turns its `ok - NAME` and `not ok - NAME: WHY` lines into checks, and misses none.

    A check that is expected and not reported is a failure, and so is an exit status that does not fit the lines.
    """
    with Process(command, stdout=subprocess.PIPE, text=True, **options) as running:
        try:
            output, _ = running.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            running.process.kill()
            output, _ = running.process.communicate()
            report.check(peer, "ends", False, f"it was still running after {timeout} s")
        status, said = running.process.returncode, running.tail()
    seen, failed = [], False
    for line in output.splitlines():
        ok = re.match(r"ok - (.+)", line)
        bad = re.match(r"not ok - ([^:]+): (.+)", line)
        if ok:
            seen.append(ok[1])
            report.check(peer, ok[1], True)
        elif bad:
            seen.append(bad[1])
            failed = True
            report.check(peer, bad[1], False, bad[2])
    for name in expected:
        if name not in seen:
            failed = True
            report.check(peer, name, False, f"never reached; exit status {status}: {' '.join(said[-600:].split())}")
    if not failed and status != 0:
        report.check(peer, "exit status", False, f"{status}: {' '.join(said[-600:].split())}")
