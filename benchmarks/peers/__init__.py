"""Our server beside those of other projects and beside floors, measured in one run by the same load client."""
