"""The pages of the desk: one file per page, with its routes and the context of its template."""
