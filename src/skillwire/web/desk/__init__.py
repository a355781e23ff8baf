"""The review desk: a page for the user of a host, on loopback only. Its decisions are stored in the host's store.

Every page works without JavaScript. Every change is a form with a token, and is bound to the content that the page
showed.
"""
