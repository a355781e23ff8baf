// The bare TypeScript SDK: every file below DIR registered by hand as a `skill://` resource, no extension.
import { isUtf8 } from "node:buffer";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { root, serve } from "./serve.mjs";

const types = { ".md": "text/markdown", ".txt": "text/plain", ".csv": "text/csv", ".json": "application/json" };
const files = readdirSync(root, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(root, join(entry.parentPath, entry.name)));

serve("bare", (server) => {
  for (const file of files) {
    const uri = `skill://${file.split("/").map(encodeURIComponent).join("/")}`;
    const mimeType = types[extname(file)] ?? "application/octet-stream";
    server.registerResource(file, uri, { mimeType }, async () => {
      const bytes = readFileSync(join(root, file));
      const content = isUtf8(bytes) ? { text: bytes.toString() } : { blob: bytes.toString("base64") };
      return { contents: [{ uri, mimeType, ...content }] };
    });
  }
});
