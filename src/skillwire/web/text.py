"""Text of strangers as HTML: what a skill says, made safe to look at, with nothing in it hidden.

Only these make ``Markup`` of what somebody else wrote: ``visible`` of any text, ``code`` of a file, ``snippet`` of
a piece of code, ``markdown`` of Markdown.
"""

from skillwire.web.escape import visible as visible
from skillwire.web.highlight import code as code
from skillwire.web.highlight import snippet as snippet
from skillwire.web.markdown import markdown as markdown
