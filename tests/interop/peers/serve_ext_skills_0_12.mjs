// The same of ext-skills 0.12, the generation before `size`.
import { discoverSkills, registerSkillResources } from "ext-skills-0.12/server";
import { root, serve } from "./serve.mjs";

const skills = discoverSkills(root);
serve("ext-skills-0.12", (server) => registerSkillResources(server, skills, root, { directoryRead: true }));
