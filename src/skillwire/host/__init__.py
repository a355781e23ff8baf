"""The host: many origins, one agent, and a person who approves content (rules V, W, A, O, N, C).

host             ``SkillHost``: origins, names and decisions of a person
conversation     ``Conversation``: the tools of a model, and the skills in its context
state            where the state of a host is stored
origins          folders and servers under labels, and unambiguous names of their skills
approvals        policy, requests to a person, and stored approvals
desk             requests that are answered by another program through the store
approval_export  export and import of approvals
loader           entry → approval → fetch → verification → content
context          text for the model, tagged with its origin; the tool definitions, in several shapes
results          loaded skills and files, tool results, refusals, the state of origins
adapters/        one file per agent framework
"""
