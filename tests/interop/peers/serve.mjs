// One server of the official TypeScript SDK, in both eras: `DIR` on stdio, `DIR http` on the loopback, on a free port or
// on that of the variable PORT.
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

export const [root, transport] = process.argv.slice(2);

// The SDK builds a server for each request (HTTP) or connection (stdio); `attach(server)` adds the skills to it.
export function serve(name, attach) {
  const build = () => {
    const server = new McpServer({ name, version: "1" }, { capabilities: { resources: {} } });
    attach(server);
    return server;
  };
  if (transport !== "http") return void serveStdio(build);
  const handle = toNodeHandler(createMcpHandler(build)); // it knows one handler and no paths
  const web = createServer((request, response) =>
    request.url === "/mcp" ? handle(request, response) : response.writeHead(404).end(),
  );
  web.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => console.error(`listening at http://127.0.0.1:${web.address().port}/mcp`));
}
