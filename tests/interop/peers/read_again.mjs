// One connection of the official TypeScript client that lasts: for every line on stdin it lists everything, reads every
// file of every skill, verified, and prints what it got as one line. What the client declines goes to `refused`.
import { createInterface } from "node:readline";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { report, sha256 } from "./connect.mjs";

async function round(skills) {
  const found = { read: {}, refused: {} };
  for (const skill of (await skills.list()).skills) {
    for (const { uri } of skill.resources) {
      try {
        found.read[uri] = sha256((await skills.read(skill, uri)).bytes);
      } catch (error) {
        found.refused[uri] = error.message;
      }
    }
  }
  return found;
}

await report(async (client) => {
  let rounds = 0;
  for await (const _ of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await round(new SkillsClient(client))));
    rounds += 1;
  }
  return { rounds };
});
