"""The host: many origins, one model, and a person who approves content (rules V, W, A, O, N, C).

host             ``Host``: combines the modules below for one agent
skill_host       ``SkillHost``: a host opened from settings and a state folder
origins          folders and servers under labels
names            unambiguous names of skills for the model
approvals        policy, requests to a person, and stored approvals
desk             requests that are answered by another program through the store
approval_export  export and import of approvals
loader           entry → approval → fetch → verification → content
windows          the skills in the model's context, and what each may cause
context          text for the model, tagged with its origin
tools            the tool definitions, in the shapes of several model APIs
results          loaded skills and files, tool results, refusals
adapters/        one file per agent framework
"""
