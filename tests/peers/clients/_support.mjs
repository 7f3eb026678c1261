// What the JavaScript clients share: named checks, waiting, and the `stats` of the server.

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function need(condition, message) {
  if (!condition) throw new Error(message);
}

export async function until(ms, probe, what) {
  const end = Date.now() + ms;
  for (;;) {
    if (await probe()) return;
    need(Date.now() < end, `${what} did not happen within ${ms} ms`);
    await sleep(50);
  }
}

export async function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not happen within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// The server's counters of the `hold` tool.
export async function heldBy(client) {
  return (await client.callTool({ name: "stats", arguments: {} })).structuredContent.held;
}

// Holds that what was `seen`, four events 200 ms apart, came one by one while the tool ran, and not in one lump before its
// result at `end`.
export function oneByOne(what, seen, end) {
  need(seen.length === 4, `${what} came ${seen.length} times and not 4`);
  need(end - seen[0].at >= 400, `${what} came ${end - seen[0].at} ms before the result: in one lump at the end`);
  need(seen[3].at - seen[0].at >= 300, `${what} came within ${seen[3].at - seen[0].at} ms: in one lump`);
}

// Calls `slow` and holds that progress, and the logs that the caller collects, came one by one. `run` makes the call, with
// the params and options that it is given.
export async function live(logs, run) {
  const progress = [];
  const result = await run(
    { name: "slow", arguments: { steps: 4, delayMs: 200 } },
    { onprogress: (p) => progress.push({ at: Date.now(), value: p.progress }), timeout: 10_000 },
  );
  const end = Date.now();
  need(progress.map((p) => p.value).join() === "1,2,3,4", `progress was ${progress.map((p) => p.value)}`);
  need(logs.length === 4 && logs.every((l) => l.level === "info"), `logs were ${JSON.stringify(logs)}`);
  oneByOne("progress", progress, end);
  oneByOne("logs", logs, end);
  need(result.content[0]?.text === "slow done", `result was ${JSON.stringify(result)}`);
}

// Reports each check as a line to `say`; `failed` says afterwards whether any failed.
export class Checks {
  failed = false;

  constructor(say) {
    this.say = say;
  }

  async run(name, body) {
    try {
      await body();
      await this.say(`ok - ${name}`);
    } catch (error) {
      this.failed = true;
      await this.say(`not ok - ${name}: ${String(error?.message ?? error).replaceAll("\n", " ")}`);
    }
  }
}
