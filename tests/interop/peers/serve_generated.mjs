// One skill that is generated on each read, said in each library's own way: `LIBRARY` on stdio, `LIBRARY http`.
// ext-skills has no function for it: its constants and schemas say what such an entry looks like, and check ours.
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { SkillsExtension } from "@modelcontextprotocol/server/ext/skills";
import * as today from "@olaservo/ext-skills/server";
import * as before from "ext-skills-0.12/server";
import { root as library, serve } from "./serve.mjs";

const entry = {
  uri: "skill://generated/SKILL.md",
  frontmatter: { name: "generated", description: "Says how often it was read." },
  ...(library === "ext-skills-0.12" ? {} : { resources: today.DYNAMIC_RESOURCES }),
};
let reads = 0;
const generate = () =>
  `---\nname: generated\ndescription: ${entry.frontmatter.description}\n---\n\nRead ${(reads += 1)} times.\n`;

// The official way: a source that lists, gets and reads.
const source = {
  list: async () => ({ skills: [entry] }),
  get: async (uri) => (uri === entry.uri ? entry : undefined),
  read: async (uri) => (uri === entry.uri ? { text: generate(), mimeType: "text/markdown" } : undefined),
};

// The way of ext-skills, at either version.
function attach(server, skills) {
  const list = { params: skills.SkillsListParamsSchema, result: skills.SkillsListResultSchema };
  const get = { params: skills.SkillsGetParamsSchema, result: skills.SkillsGetResultSchema };
  skills.declareSkillsExtension(server.server);
  server.server.setRequestHandler(skills.SKILLS_LIST_METHOD, list, async () => list.result.parse({ skills: [entry] }));
  server.server.setRequestHandler(skills.SKILLS_GET_METHOD, get, async ({ uri }) => {
    if (uri !== entry.uri) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Not a skill: ${uri}`);
    return get.result.parse({ skill: entry });
  });
  server.registerResource("generated", entry.uri, { mimeType: "text/markdown" }, async () => ({
    contents: [{ uri: entry.uri, mimeType: "text/markdown", text: generate() }],
  }));
}

const attached = {
  typescript: (server) => new SkillsExtension({ source }).attach(server),
  "ext-skills": (server) => attach(server, today),
  "ext-skills-0.12": (server) => attach(server, before),
};
serve(library, attached[library]);
