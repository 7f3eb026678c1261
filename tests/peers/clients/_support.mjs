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
