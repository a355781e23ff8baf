// The skills server of ext-skills.
import { discoverSkills, registerSkillResources } from "@olaservo/ext-skills/server";
import { root, serve } from "./serve.mjs";

const skills = discoverSkills(root);
serve("ext-skills", (server) => registerSkillResources(server, skills, root, { directoryRead: true }));
