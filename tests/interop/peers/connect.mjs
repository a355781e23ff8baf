// One connection of the official TypeScript client: `ERA http URL` or `ERA stdio COMMAND ARGUMENT…`.
import { createHash } from "node:crypto";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const skipped = new RegExp(process.env.SKIP ?? "^$");

export const isSkipped = (uri) => skipped.test(uri);
export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

// Calls `visit(client)` and prints what it returns, with the protocol version that was agreed on, as JSON.
export async function report(visit) {
  const [era, transport, target, ...rest] = process.argv.slice(2);
  const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";
  const client = new Client({ name: "skillwire-interop", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(
    transport === "http"
      ? new StreamableHTTPClientTransport(new URL(target))
      : new StdioClientTransport({ command: target, args: rest, stderr: "ignore" }),
  );
  try {
    const found = await visit(client);
    console.log(JSON.stringify({ version: client.getNegotiatedProtocolVersion(), ...found }));
  } finally {
    await client.close();
  }
}
