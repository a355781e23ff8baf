// The official TypeScript client without a word about skills: resources, a template with completion, tools, prompts.
// The environment's `READ` is a file with more URIs to read, as JSON.
import { readFileSync } from "node:fs";
import { report, sha256 } from "./connect.mjs";

await report(async (client) => {
  const listed = (await client.listResources()).resources.map(({ uri }) => uri); // all pages
  const read = {};
  for (const uri of JSON.parse(readFileSync(process.env.READ))) {
    const [{ text, blob }] = (await client.readResource({ uri })).contents;
    read[uri] = sha256(text ?? Buffer.from(blob, "base64"));
  }
  const templates = (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate);
  const reference = { type: "ref/resource", uri: templates[0] };
  const complete = (value) => client.complete({ ref: reference, argument: { name: "path", value } });
  return {
    listed,
    read,
    templates,
    completed: (await complete("")).completion.values,
    tools: (await client.listTools()).tools.map(({ name }) => name),
    prompts: (await client.listPrompts()).prompts.map(({ name }) => name),
  };
});
