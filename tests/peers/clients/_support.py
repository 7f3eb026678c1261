"""What the Python clients share: named checks, waiting, and the `stats` of the server."""

import asyncio
import time

REVISION = "2026-07-28"
WATCHED = "test://watched-resource"

failed = False


class Unmet(Exception):
    """A check's condition did not hold."""


def need(condition, message):
    if not condition:
        raise Unmet(message)


class check:
    """`async with check(name):` reports the block's outcome as one line; a failure does not stop the script."""

    def __init__(self, name):
        self.name = name

    async def __aenter__(self):
        self.limit = asyncio.timeout(20)
        await self.limit.__aenter__()
        return self

    async def __aexit__(self, kind, error, trace):
        global failed
        try:
            await self.limit.__aexit__(kind, error, trace)
        except TimeoutError:
            kind, error = TimeoutError, "the whole check did not happen within 20 s"
        if kind is None:
            print(f"ok - {self.name}", flush=True)
            return False
        failed = True
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
            kind = type(error)
        text = " ".join(f"{kind.__name__}: {error}".split())
        print(f"not ok - {self.name}: {text}", flush=True)
        # A cancelled or interrupted script must end, not go on with the next check.
        return issubclass(kind, Exception)


async def until(seconds, probe, what):
    end = time.monotonic() + seconds
    while not await probe():
        need(time.monotonic() < end, f"{what} did not happen within {seconds} s")
        await asyncio.sleep(0.05)


def spread(what, times, end, count):
    """Holds that `count` events came one by one while the tool ran, and not in one lump before its result."""
    need(len(times) == count, f"{len(times)} {what} instead of {count}")
    need(end - times[0] >= 0.4, f"{what} came {end - times[0]:.2f} s before the result: in one lump at the end")
    need(times[-1] - times[0] >= 0.3, f"{what} came within {times[-1] - times[0]:.2f} s: in one lump")
