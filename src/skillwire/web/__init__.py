"""Pages for people: the catalog in a browser, and the review desk. One look; what is shown is never trusted.

Nothing heavy (templates, highlighting, the sanitiser) is imported before the first page is asked for.
"""
