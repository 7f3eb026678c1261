// The TypeScript SDK's client of the earlier revisions (npm @modelcontextprotocol/sdk 1.x) against a running server.
// Usage: PEERS_NPM=FOLDER node typescript_1.mjs URL  — FOLDER is where npm installed the client.
import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";
import { pathToFileURL } from "node:url";

import { Checks, heldBy, live, need, until, within } from "./_support.mjs";

const require = createRequire(`${process.env.PEERS_NPM}/`);
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}.js`)).href);
const { Client } = await load("client/index");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp");
const { LoggingMessageNotificationSchema, ResultSchema } = await load("types");

const REVISION = "2025-11-25";

// A client, what it answered to each message that it posted, and what went wrong without a call to tell it to.
class Peer {
  answers = [];
  errors = [];
  client = new Client({ name: "peer-typescript-1", version: "1.0.0" });

  async connect() {
    this.client.onerror = (error) => this.errors.push(error.message);
    const ask = async (url, init) => {
      const answer = await fetch(url, init);
      if (init.method === "POST") this.answers.push(`${JSON.parse(init.body).method} ${answer.status}`);
      return answer;
    };
    this.transport = new StreamableHTTPClientTransport(new URL(process.argv[2]), { fetch: ask });
    await within(10_000, this.client.connect(this.transport), "connecting");
    return this.client;
  }
}

const ended = (call) => call.then(() => "answered", () => "not answered");
const failure = (call) => call.then(() => ({ code: "no error" }), (error) => error);

const checks = new Checks(console.log);
const peer = new Peer();
const client = peer.client;
const held = () => heldBy(client);

await checks.run("agrees on the earlier revision", async () => {
  await peer.connect();
  need(peer.transport.protocolVersion === REVISION, `negotiated ${peer.transport.protocolVersion}`);
  need(client.getServerVersion()?.name, "the server did not say who it is");
  need(client.getServerCapabilities()?.tools, `its capabilities are ${JSON.stringify(client.getServerCapabilities())}`);
  const { tools } = await client.listTools();
  need(tools.some((tool) => tool.name === "slow"), "tools/list has no `slow`");
});

await checks.run("is answered a ping", async () => {
  await client.ping({ timeout: 5_000 });
});

await checks.run("progress and logs arrive while the tool runs, then the result", async () => {
  const logs = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, (n) => {
    logs.push({ at: Date.now(), level: n.params.level });
  });
  await client.setLoggingLevel("info");
  await live(logs, (params, options) => client.callTool(params, undefined, options));
});

await checks.run("reads structured content", async () => {
  const value = { list: [1, "zwei", null], text: "drei\u2028vier" };
  const { structuredContent } = await client.callTool({ name: "echo", arguments: { value } });
  need(isDeepStrictEqual(structuredContent, { value }), `it read ${JSON.stringify(structuredContent)}`);
});

await checks.run("reads the codes of errors", async () => {
  const custom = { code: -32050, message: "out of paper", data: { tray: 2 } };
  const failed = await failure(client.callTool({ name: "fail", arguments: custom }));
  need(failed.code === -32050 && failed.data?.tray === 2, `a tool's: ${failed.code}, ${failed}`);
  const unknown = await failure(client.request({ method: "no/such" }, ResultSchema));
  need(unknown.code === -32601, `an unknown method's: ${unknown.code}, ${unknown}`);
  const missing = await failure(client.readResource({ uri: "test://no-such" }));
  need(missing.code === -32002, `a missing resource's: ${missing.code}, ${missing}`);
});

for (const stream of [true, false]) {
  await checks.run(`closes during a ${stream ? "streaming" : "silent"} call and the work stops`, async () => {
    const other = await new Peer().connect();
    const before = await held();
    const running = ended(other.callTool({ name: "hold", arguments: { ms: 20_000, stream } }));
    await until(5_000, async () => (await held()).started === before.started + 1, "the start of the call");
    await other.close();
    need((await within(5_000, running, "the end of the call")) === "not answered", "the call was answered");
    await until(5_000, async () => (await held()).cancelled === before.cancelled + 1, "the handler's cancellation");
    need((await held()).completed === before.completed, "the handler completed");
  });
}

// It says that it has given up, and keeps the connection.
await checks.run("gives up a call and goes on", async () => {
  const before = await held();
  const abort = new AbortController();
  const call = { name: "hold", arguments: { ms: 60_000, stream: true } };
  const running = ended(client.callTool(call, undefined, { signal: abort.signal }));
  await until(5_000, async () => (await held()).started === before.started + 1, "the start of the call");
  abort.abort("not needed any more");
  need((await within(5_000, running, "the end of the call")) === "not answered", "the call was answered");
  await until(5_000, () => peer.answers.includes("notifications/cancelled 202"), "the server's taking the cancellation");
  await client.ping({ timeout: 5_000 });
});

await checks.run("saw nothing amiss, and closes", async () => {
  need(peer.errors.length === 0, peer.errors.join("; "));
  need(peer.answers.includes("notifications/initialized 202"), `it was answered ${peer.answers}`);
  await within(5_000, client.close(), "closing");
});
process.exit(checks.failed ? 1 : 0);
