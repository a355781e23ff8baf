// One server of the official TypeScript SDK over HTTP, on a free port of the loopback: `NAME.mjs DIR`.
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";

export const [root] = process.argv.slice(2);

// The SDK builds a server for each request; `attach(server)` adds the skills to it.
export function serve(name, attach) {
  const handle = toNodeHandler(
    createMcpHandler(() => {
      const server = new McpServer({ name, version: "1" }, { capabilities: { resources: {} } });
      attach(server);
      return server;
    }),
  );
  const web = createServer(handle);
  web.keepAliveTimeout = 60_000; // a connection may wait for its turn while another server is measured
  web.listen(0, "127.0.0.1", () => console.error(`listening at http://127.0.0.1:${web.address().port}/mcp`));
}
