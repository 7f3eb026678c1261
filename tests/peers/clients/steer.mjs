// One URL, clients of both eras: the example `steer` and the TypeScript SDK's clients, that of the earlier revisions (npm
// @modelcontextprotocol/sdk 1.x) and the modern one (npm @modelcontextprotocol/client).
// Usage: PEERS_NPM=FOLDER node steer.mjs URL  — FOLDER is where npm installed the clients.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { Checks, need, oneByOne, until, within } from "./_support.mjs";

const require = createRequire(`${process.env.PEERS_NPM}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const earlier = {
  ...(await load("@modelcontextprotocol/sdk/client/index.js")),
  ...(await load("@modelcontextprotocol/sdk/client/streamableHttp.js")),
};
const modern = await load("@modelcontextprotocol/client");

const url = new URL(process.argv[2]);
const checks = new Checks(console.log);
const MODERN = { "mcp-protocol-version": "2026-07-28" };

// A client, and for each of its requests: the method, the version header, the status and the session of the answer.
class Peer {
  seen = [];

  constructor({ Client, StreamableHTTPClientTransport }, options, dress = (init) => init) {
    this.client = new Client({ name: "peer-steer", version: "1.0.0" }, options);
    const ask = async (input, init) => {
      const sent = dress(init);
      const answer = await fetch(input, sent);
      const version = new Headers(sent.headers).get("mcp-protocol-version");
      this.seen.push({ method: init.method, version, status: answer.status, session: answer.headers.get("mcp-session-id") });
      return answer;
    };
    this.transport = new StreamableHTTPClientTransport(url, { fetch: ask });
  }

  async connect(server) {
    await within(10_000, this.client.connect(this.transport), "connecting");
    need(this.client.getServerVersion()?.name === server, `it was served by ${JSON.stringify(this.client.getServerVersion())}`);
  }

  // Lists the tool, and calls it: progress has to come one by one while it runs.
  async counts() {
    const { tools } = await this.client.listTools();
    need(tools.length === 1 && tools[0].name === "count", `tools/list has ${tools.map((tool) => tool.name)}`);
    need(tools[0].inputSchema.properties?.to, `it takes ${JSON.stringify(tools[0].inputSchema)}`);
    const progress = [];
    const options = { onprogress: (p) => progress.push({ at: Date.now(), value: `${p.progress}/${p.total}` }), timeout: 10_000 };
    const params = { name: "count", arguments: { to: 4 } };
    // The earlier client takes a schema between the two.
    const result = await this.client.callTool(params, ...(this.client.listen ? [options] : [undefined, options]));
    oneByOne("progress", progress, Date.now());
    need(progress.map((p) => p.value).join() === "1/4,2/4,3/4,4/4", `progress was ${progress.map((p) => p.value)}`);
    need(result.content[0]?.text === "counted to 4", `result was ${JSON.stringify(result)}`);
  }
}

// What the earlier client sends, as one of 2025-03-26 would: this revision has no version header.
function of2025_03_26(init) {
  const headers = new Headers(init.headers);
  headers.delete("mcp-protocol-version");
  const body = init.body?.replace('"protocolVersion":"2025-11-25"', '"protocolVersion":"2025-03-26"');
  return { ...init, headers, ...(body && { body }) };
}

const old = new Peer(earlier);
const older = new Peer(earlier, undefined, of2025_03_26);
const current = new Peer(modern, { versionNegotiation: { mode: "auto" } });

await checks.run("a client agrees on 2025-11-25 with rmcp, which keeps a session for it", async () => {
  await old.connect("steer, legacy");
  need(old.transport.protocolVersion === "2025-11-25", `negotiated ${old.transport.protocolVersion}`);
  need(old.transport.sessionId && old.seen[0].session === old.transport.sessionId, "it has no session");
});

await checks.run("so does one on 2025-03-26, which never names its revision in a header", async () => {
  await older.connect("steer, legacy");
  need(older.transport.protocolVersion === "2025-03-26", `negotiated ${older.transport.protocolVersion}`);
  need(older.transport.sessionId && older.transport.sessionId !== old.transport.sessionId, "it has no session of its own");
});

await checks.run("a client that may speak either agrees on 2026-07-28 with the layer, without a session", async () => {
  await current.connect("steer, modern");
  const agreed = current.client.getNegotiatedProtocolVersion();
  need(agreed === "2026-07-28", `negotiated ${agreed}`);
});

await checks.run("all of them call at once, and each sees its progress while the tool runs", async () => {
  await Promise.all([old.counts(), older.counts(), current.counts()]);
  need(older.seen.every((request) => request.version === null), "the one of 2025-03-26 named its revision");
  need(current.seen.every((request) => request.session === null), "the modern one was given a session");
});

await checks.run("the sessions' GET streams open, and a modern GET or DELETE is refused by the layer", async () => {
  for (const peer of [old, older]) {
    await until(5_000, () => peer.seen.some((r) => r.method === "GET" && r.status === 200), "the opening of the stream");
  }
  for (const method of ["GET", "DELETE"]) {
    const headers = { ...MODERN, accept: "text/event-stream" };
    const answer = await fetch(url, { method, headers });
    const said = await answer.text();
    need(answer.status === 405, `${method} was answered ${answer.status}`);
    // rmcp refuses it as well, in other words.
    need(said.startsWith(`{"jsonrpc":"2.0","error":`), `${method} was answered ${said}`);
  }
});

await checks.run("DELETE ends a session, and leaves the others alone", async () => {
  for (const peer of [old, older]) {
    const session = peer.transport.sessionId;
    await within(5_000, peer.transport.terminateSession(), "the end of the session");
    need(peer.seen.at(-1).method === "DELETE" && peer.seen.at(-1).status < 300, JSON.stringify(peer.seen.at(-1)));
    await peer.client.close();
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const answer = await fetch(url, { method: "POST", headers: { ...headers, "mcp-session-id": session }, body });
    need(answer.status === 404, `the ended session was answered ${answer.status}`);
    await (peer === old ? older : current).client.listTools();
  }
  await current.client.close();
});
process.exit(checks.failed ? 1 : 0);
