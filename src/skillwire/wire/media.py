"""The media type of a file, by its name (R1). Python's own table knows too few text formats.

The bytes of a file decide whether it is sent as text or base64, not its media type.
"""

from __future__ import annotations

DIRECTORY = "inode/directory"
UNKNOWN = "application/octet-stream"

_BY_SUFFIX = {
    "md": "text/markdown", "markdown": "text/markdown", "mdx": "text/markdown",
    "txt": "text/plain", "text": "text/plain", "log": "text/plain", "rst": "text/x-rst",
    "csv": "text/csv", "tsv": "text/tab-separated-values",
    "html": "text/html", "htm": "text/html", "css": "text/css", "xml": "application/xml",
    "json": "application/json", "jsonl": "application/jsonl", "ndjson": "application/jsonl",
    "json5": "application/json5", "ipynb": "application/x-ipynb+json",
    "yaml": "application/yaml", "yml": "application/yaml", "toml": "application/toml",
    "ini": "text/plain", "cfg": "text/plain", "conf": "text/plain", "properties": "text/plain",
    "py": "text/x-python", "pyi": "text/x-python", "sh": "application/x-sh", "bash": "application/x-sh",
    "zsh": "application/x-sh", "fish": "application/x-sh", "ps1": "text/plain", "bat": "text/plain",
    "js": "text/javascript", "mjs": "text/javascript", "cjs": "text/javascript", "jsx": "text/javascript",
    "ts": "text/typescript", "tsx": "text/typescript", "vue": "text/plain", "svelte": "text/plain",
    "go": "text/x-go", "rs": "text/x-rust", "java": "text/x-java", "kt": "text/x-kotlin", "swift": "text/x-swift",
    "c": "text/x-c", "h": "text/x-c", "cc": "text/x-c++", "cpp": "text/x-c++", "hpp": "text/x-c++",
    "cs": "text/x-csharp", "rb": "text/x-ruby", "php": "text/x-php", "pl": "text/x-perl", "lua": "text/x-lua",
    "r": "text/x-r", "jl": "text/x-julia", "sql": "application/sql", "graphql": "application/graphql",
    "proto": "text/x-protobuf", "tex": "text/x-tex", "diff": "text/x-diff", "patch": "text/x-diff",
    "jinja": "text/plain", "j2": "text/plain", "tmpl": "text/plain", "template": "text/plain",
    "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
    "webp": "image/webp", "avif": "image/avif", "ico": "image/x-icon", "bmp": "image/bmp", "tiff": "image/tiff",
    "pdf": "application/pdf", "zip": "application/zip", "gz": "application/gzip", "tar": "application/x-tar",
    "woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf",
    "mp3": "audio/mpeg", "wav": "audio/wav", "ogg": "audio/ogg", "mp4": "video/mp4", "webm": "video/webm",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}  # fmt: skip
_BY_NAME = {
    "makefile": "text/x-makefile", "dockerfile": "text/plain", "license": "text/plain", "readme": "text/plain",
    "notice": "text/plain", "changelog": "text/plain", ".gitignore": "text/plain", ".editorconfig": "text/plain",
}  # fmt: skip


def media_type(name: str) -> str:
    """The media type of a file with this name."""
    lowered = name.lower()
    if lowered in _BY_NAME:
        return _BY_NAME[lowered]
    _, dot, suffix = lowered.rpartition(".")
    return _BY_SUFFIX.get(suffix, UNKNOWN) if dot else UNKNOWN
