"""Many origins, one model, a person in charge: the host's side of the rules (V, W, A, O, N, C).

origins      folders and servers under labels of ours; each says how current it is
names        what a model may call a skill; what is ambiguous is never guessed
approvals    who says yes, to what, for how long
loading      entry → approval → fetch → verify → context; and files of what was loaded
context      what the model sees, tagged with its origin
tools        the three tools, in every framework's shape
cache        verified content by digest, private to the user
runtime      ``SkillHost``: all of it together
adapters/    one thin file per agent framework
"""
