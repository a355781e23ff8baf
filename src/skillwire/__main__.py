"""``python -m skillwire`` is ``skillwire``."""

from skillwire.cli.main import main

main()
