// Everything a server has, through the official TypeScript SDK's `SkillsClient`, which verifies each read:
// list, get each skill, read each of its files, walk its directories. What the client declines goes to `refused`.
// Skills and files whose URIs match the environment's `SKIP` are listed only.
import { DIRECTORY_MIME_TYPE, SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { isDeepStrictEqual } from "node:util";
import { isSkipped, report, sha256 } from "./connect.mjs";

async function walk(skills, uri, files = []) {
  for (const child of (await skills.readDirectory(uri)).resources) {
    if (child.mimeType === DIRECTORY_MIME_TYPE) await walk(skills, child.uri, files);
    else files.push(child.uri);
  }
  return files;
}

await report(async (client) => {
  const found = { listing: null, skills: [], read: {}, walked: {}, refused: {} };
  const strict = new SkillsClient(client);
  await strict.list().catch((error) => (found.listing = error.message));
  const skills = new SkillsClient(client, { skipInvalid: true });
  for (const listed of (await skills.list()).skills) {
    found.skills.push(listed.uri);
    if (isSkipped(listed.uri)) continue;
    const { skill } = await skills.get(listed.uri);
    if (!isDeepStrictEqual(skill, listed)) throw new Error(`get and list disagree on ${listed.uri}`);
    for (const { uri } of skill.resources) {
      if (isSkipped(uri)) continue;
      try {
        const file = await skills.read(skill, uri);
        if (!file.verified) throw new Error("not verified");
        found.read[uri] = sha256(file.bytes);
      } catch (error) {
        found.refused[uri] = error.message;
      }
    }
    found.walked[listed.uri] = await walk(skills, skill.uri.replace(/\/SKILL\.md$/, ""));
  }
  return found;
});
