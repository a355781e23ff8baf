"""The bounds on what others send, which a program can set (rules B1–B4, E6, Z6).

A bound that no user needs to change, such as on the entries of a cache, is a constant beside its code.

There are two kinds here. ``skill_*`` are limits of the extension that every host accepts; above them a server
warns. ``max_*`` are limits of this program; above them it refuses, before doing the work.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on reading, listing and parsing. The defaults suit laptops and servers."""

    # E6: hosts must accept a skill up to these; a server warns above them.
    skill_resources: int = 512
    skill_bytes: int = 16 * MIB

    # One skill; a larger one is refused.
    max_resources: int = 10_000
    max_skill_bytes: int = 256 * MIB
    max_skill_md_bytes: int = 16 * MIB
    max_frontmatter_bytes: int = 256 * KIB
    max_yaml_depth: int = 32
    max_settings_bytes: int = 64 * KIB  # the skillwire.toml of a folder

    # One tree of folders.
    max_depth: int = 64
    max_tree_entries: int = 10_000_000

    # One request.
    max_uri_length: int = 4 * KIB
    max_uri_segments: int = 128
    max_cursor_length: int = 8 * KIB
    max_page_size: int = 1_000
    max_arguments: int = 64  # of a skill, and the size of each
    max_argument_bytes: int = 16 * KIB

    # One client of our HTTP servers (Z6); above these it is refused or disconnected.
    max_head_bytes: int = 32 * KIB
    max_headers: int = 100
    max_request_seconds: float = 10.0  # for the head of a request, and again for its body
    max_unread_seconds: float = 30.0  # for a client that does not read its response
    max_unread_bytes: int = 256 * MIB  # of all clients together

    # One server, as seen by our client (B1-B4).
    max_message_bytes: int = 64 * MIB
    max_message_values: int = 250_000  # JSON values in one message, or in one document such as an index
    max_notice_bytes: int = 64 * KIB  # a message that is not a response, such as a notification
    max_notice_values: int = 1_000
    max_page_bytes: int = 16 * MIB  # one page of a listing
    max_file_bytes: int = 32 * MIB
    max_server_bytes: int = 1024 * MIB
    max_index_bytes: int = 16 * MIB
    max_pages: int = 10_000
    max_entries: int = 100_000
    max_listing_bytes: int = 128 * MIB  # all pages of a listing together
    max_listing_values: int = 3_000_000  # JSON values in them
    max_listing_objects: int = 1_000_000  # objects and lists among them, which need most of the memory
    max_listing_seconds: float = 60.0
    after_match_seconds: float = 5.0  # how long a lookup by name reads on, to see whether the name is ambiguous
    max_call_seconds: float = 30.0
    max_connect_attempts: int = 4

    # The shortest time between two listings of a server, even if it reports changes more often.
    relist_seconds: float = 1.0
    # Pauses between attempts to connect: doubling from the first to the longest.
    first_retry_seconds: float = 0.1
    longest_retry_seconds: float = 5.0
    # The same for an upstream whose circuit is open after repeated failures.
    first_rest_seconds: float = 1.0
    longest_rest_seconds: float = 60.0
    # How long to wait for the last output of a process after its end.
    last_output_seconds: float = 0.5

    # One archive (I3), in addition to the bounds of one skill.
    max_archive_bytes: int = 32 * MIB
    max_archive_ratio: int = 200

    # One fetch from a Git repository.
    max_git_seconds: float = 120.0
    max_git_bytes: int = 256 * MIB

    # The text of one file in a check (links, hidden text); of larger files only the size is checked.
    max_checked_text: int = 2 * MIB
    # One call of a function that generates a skill.
    max_generate_seconds: float = 30.0

    # One search, and the indexed text of one skill; text beyond these bounds is ignored without an error.
    max_query_length: int = 1_000
    max_query_words: int = 32
    max_indexed_text: int = 64 * KIB


DEFAULT_LIMITS = Limits()
