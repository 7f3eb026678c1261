// The client's list of README.md, for the TypeScript SDK's client (npm @modelcontextprotocol/client), wherever it runs.
import { heldBy, live, need, until, within } from "./_support.mjs";

export const REVISION = "2026-07-28";
const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

// Runs the list, and returns the client, which is connected.
export async function list({ Client, StreamableHTTPClientTransport }, url, checks) {
  const client = new Client(
    { name: "peer-typescript", version: "1.0.0" },
    { versionNegotiation: { mode: { pin: REVISION } } },
  );
  const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, options);
  const held = () => heldBy(client);

  await checks.run("discovers the revision", async () => {
    await within(10_000, client.connect(new StreamableHTTPClientTransport(new URL(url))), "connecting");
    need(client.getNegotiatedProtocolVersion() === REVISION, `negotiated ${client.getNegotiatedProtocolVersion()}`);
    const { tools } = await client.listTools();
    need(tools.some((tool) => tool.name === "slow"), "tools/list has no `slow`");
  });

  await checks.run("progress and logs arrive while the tool runs, then the result", async () => {
    const logs = [];
    client.setNotificationHandler("notifications/message", (n) => {
      logs.push({ at: Date.now(), level: n.params.level });
    });
    await live(logs, (params, options) => client.callTool({ ...params, _meta: { [LOG_LEVEL]: "info" } }, options));
  });

  let subscription;
  const heard = new Map();
  await checks.run("listens and hears four kinds of change with an id of its own type", async () => {
    for (const method of [
      "notifications/tools/list_changed",
      "notifications/prompts/list_changed",
      "notifications/resources/list_changed",
      "notifications/resources/updated",
    ]) {
      client.setNotificationHandler(method, (n) => {
        heard.set(method, n.params);
      });
    }
    subscription = await client.listen(
      {
        toolsListChanged: true,
        promptsListChanged: true,
        resourcesListChanged: true,
        resourceSubscriptions: ["test://watched-resource"],
      },
      { timeout: 10_000 },
    );
    need(
      subscription.honoredFilter.resourceSubscriptions?.[0] === "test://watched-resource",
      `honoured filter ${JSON.stringify(subscription.honoredFilter)}`,
    );
    await call("touch");
    await until(5_000, () => heard.size === 4, `hearing four kinds (heard ${[...heard.keys()]})`);
    for (const [method, params] of heard) {
      // This client's listen ids are strings; one that came back as another type would not have been routed.
      const id = params?._meta?.[SUBSCRIPTION_ID];
      need(typeof id === "string" && id.startsWith("listen:"), `${method} carries subscription id ${JSON.stringify(id)}`);
    }
    need(heard.get("notifications/resources/updated").uri === "test://watched-resource", "the update names another URI");
  });

  await checks.run("reads the server's end of the subscription as graceful", async () => {
    need(subscription, "there is no subscription");
    await call("close_subscriptions");
    const end = await within(5_000, subscription.closed, "the end of the subscription");
    need(end === "graceful", `it ended as ${end}`);
  });

  await checks.run("ends a subscription of its own accord", async () => {
    const mine = await client.listen({ toolsListChanged: true }, { timeout: 10_000 });
    const before = (await call("stats")).structuredContent.subscriptions;
    await mine.close();
    need((await mine.closed) === "local", "it did not end locally");
    await until(
      5_000,
      async () => (await call("stats")).structuredContent.subscriptions === before - 1,
      "the server's forgetting the subscription",
    );
  });

  for (const stream of [true, false]) {
    await checks.run(`cancels a ${stream ? "streaming" : "silent"} call in flight and the work stops`, async () => {
      const before = await held();
      const abort = new AbortController();
      const running = call("hold", { ms: 20_000, stream }, { signal: abort.signal }).then(
        () => "answered",
        () => "aborted",
      );
      await until(5_000, async () => (await held()).started === before.started + 1, "the start of the call");
      abort.abort("not needed any more");
      need((await within(5_000, running, "the end of the call")) === "aborted", "the call was answered");
      await until(5_000, async () => (await held()).cancelled === before.cancelled + 1, "the handler's cancellation");
      need((await held()).completed === before.completed, "the handler completed");
    });
  }

  return client;
}
