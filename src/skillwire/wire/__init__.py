"""One file per dialect: messages, and how they map to catalogs and errors."""
