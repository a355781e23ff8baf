"""Web pages: the catalog in a browser, and the review desk. They share one theme; shown content is never trusted.

Templates, highlighting and the sanitizer are imported with the first page.
"""
