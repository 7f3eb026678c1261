// What runs in a web page: `browser.py` serves it, and opens it as a page that the server allows, as a part of that page which
// goes away, and as a page of an origin that the server does not know.
import * as sdk from "@modelcontextprotocol/client";

import { Checks, heldBy, need, until } from "./_support.mjs";
import { REVISION, list } from "./list.mjs";

const query = new URLSearchParams(location.search);
const server = query.get("server");
const checks = new Checks((line) => fetch("/said", { method: "POST", body: line }));

// A call of the tool `hold`, by hand.
const body = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "hold",
    arguments: { ms: 20_000, stream: true },
    _meta: {
      "io.modelcontextprotocol/protocolVersion": REVISION,
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
});
const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": REVISION,
  "mcp-method": "tools/call",
  "mcp-name": "hold",
};
const post = (init) => fetch(server, { method: "POST", headers, body, ...init });
// Whether the page was kept from reading an answer.
const kept = (answer) => answer.then(() => false, (error) => error instanceof TypeError);

const roles = {
  async allowed() {
    const client = await list(sdk, server, checks);

    await checks.run("a page reads why its request was refused", async () => {
      const answer = await post({ headers: { ...headers, "mcp-name": "another" } });
      const { error } = await answer.json();
      need(answer.status === 400 && error.code === -32020, `it read ${answer.status} and ${JSON.stringify(error)}`);
    });

    await checks.run("what a closed page called is cancelled", async () => {
      const before = await heldBy(client);
      const page = document.createElement("iframe");
      page.src = `/?${new URLSearchParams({ role: "calling", server })}`;
      document.body.append(page);
      const held = () => heldBy(client);
      await until(5_000, async () => (await held()).started === before.started + 1, "the start of the call");
      page.remove();
      await until(5_000, async () => (await held()).cancelled === before.cancelled + 1, "the handler's cancellation");
    });

    await checks.run("a page of another origin starts no work", async () => {
      const before = await heldBy(client);
      let said;
      addEventListener("message", (event) => {
        said = event.data;
      });
      document.body.append(Object.assign(document.createElement("iframe"), { src: query.get("foreign") }));
      await until(10_000, () => said, "the other page's end");
      need(said.kept, "it read an answer");
      need(said.sent, "it could not send anything at all");
      const after = await heldBy(client);
      need(after.started === before.started, `${after.started - before.started} handlers started`);
    });
    await client.close();
  },

  async calling() {
    await post();
  },

  async foreign() {
    // Once with everything that a call needs, which the browser asks about first, and once as what it sends unasked.
    const refused = await kept(post());
    const unasked = { mode: "no-cors", headers: { "content-type": "text/plain" } };
    const opaque = await post(unasked);
    // The same to the folder of this page, by another name: such a request does leave the browser.
    const sent = !(await kept(fetch(query.get("control"), { method: "POST", body, ...unasked })));
    parent.postMessage({ kept: refused && opaque.type === "opaque" && opaque.status === 0, sent }, "*");
  },
};

const role = query.get("role");
const broken = await roles[role]().then(() => "", String);
if (role === "allowed") await fetch("/end", { method: "POST", body: broken });
