// The same through ext-skills' client, which reads text and base64 in its own way and parses YAML with another library.
import { discoverAndBuildCatalog, getSkill, manifestOf, readSkill, readSkillResource, walkDirectory } from "@olaservo/ext-skills/client";
import { isDeepStrictEqual } from "node:util";
import { isSkipped, report, sha256 } from "./connect.mjs";

await report(async (client) => {
  const found = { skills: [], read: {}, walked: {}, refused: {}, catalog: null };
  const { skills, catalog } = await discoverAndBuildCatalog(client, { serverName: "ours", serverInEntries: true });
  found.catalog = catalog;
  for (const listed of skills) {
    found.skills.push(listed.uri);
    if (isSkipped(listed.uri)) continue;
    const skill = await getSkill(client, listed.uri);
    if (!isDeepStrictEqual(skill, listed)) throw new Error(`get and list disagree on ${listed.uri}`);
    for (const { uri } of manifestOf(skill)) {
      if (isSkipped(uri)) continue;
      try {
        if (uri === skill.uri) {
          found.read[uri] = sha256(await readSkill(client, skill));
        } else {
          const { text, blob } = await readSkillResource(client, skill, uri);
          found.read[uri] = sha256(text ?? Buffer.from(blob, "base64"));
        }
      } catch (error) {
        found.refused[uri] = error.message;
      }
    }
    found.walked[listed.uri] = (await walkDirectory(client, skill.uri.replace(/\/SKILL\.md$/, ""))).map(({ uri }) => uri);
  }
  return found;
});
