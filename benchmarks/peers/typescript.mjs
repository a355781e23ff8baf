// The official TypeScript SDK's own skills server.
import { loadSkills } from "@modelcontextprotocol/server/ext/skills/node";
import { root, serve } from "./serve.mjs";

const skills = await loadSkills(root);
serve("typescript", (server) => skills.attach(server));
