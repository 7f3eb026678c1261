// The TypeScript SDK's client in Node.js against a running server.
// Usage: PEERS_NPM=FOLDER node typescript.mjs URL  — FOLDER is where npm installed the client.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { Checks } from "./_support.mjs";
import { list } from "./list.mjs";

const require = createRequire(`${process.env.PEERS_NPM}/`);
const sdk = await import(pathToFileURL(require.resolve("@modelcontextprotocol/client")).href);

const checks = new Checks(console.log);
const client = await list(sdk, process.argv[2], checks);
await client.close();
process.exit(checks.failed ? 1 : 0);
