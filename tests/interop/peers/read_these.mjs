// Single skills of a server by their URIs, listed or not, through the official TypeScript SDK's `SkillsClient`: the
// digest of each file, verified. The URIs are in the environment's `URIS`, one in each line.
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { report, sha256 } from "./connect.mjs";

await report(async (client) => {
  const skills = new SkillsClient(client);
  const found = {};
  for (const uri of process.env.URIS.split("\n")) {
    const { skill } = await skills.get(uri);
    found[uri] = {};
    for (const resource of skill.resources) {
      const file = await skills.read(skill, resource.uri);
      if (!file.verified) throw new Error("not verified");
      found[uri][resource.uri] = sha256(file.bytes);
    }
  }
  return found;
});
