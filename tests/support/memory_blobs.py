"""HASTE's container in memory, and files on a node."""

from __future__ import annotations

from shared.haste.workload import MOST_BYTES_OF_FILE

BASE_URL = "http://127.0.0.1:10000/devstoreaccount1/data"
SAS = "sv=2024-11-04&si=image-layer-r-policy&sr=c&sig=c2FtcGxlLXNpZ25hdHVyZS1ub3QtcmVhbC0wMDAwMDAwMDA%3D"


class MemoryBlobs:
    """`Blobs` over a dict; remembers how long the ranges were that were read."""

    def __init__(self, content: dict[str, bytes] | None = None, base_url: str = BASE_URL) -> None:
        self.content = dict(content or {})
        self.base_url = base_url
        self.range_lengths: list[int] = []

    def url(self, name: str) -> str:
        return f"{self.base_url}/{name}"

    def reading_url(self, name: str) -> str:
        return f"{self.url(name)}?{SAS}"

    def read(self, name: str) -> bytes | None:
        return self.content.get(name)

    def read_range(self, name: str, offset: int, length: int) -> bytes | None:
        content = self.content.get(name)
        if content is None:
            return None
        self.range_lengths.append(len(content[offset : offset + length]))
        return content[offset : offset + length]

    def size_bytes(self, name: str) -> int | None:
        content = self.content.get(name)
        return None if content is None else len(content)

    def write(self, name: str, content: bytes) -> None:
        self.content[name] = content

    def create(self, name: str, content: bytes) -> bool:
        if name in self.content:
            return False
        self.content[name] = content
        return True

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self.content if name.startswith(prefix) and "/" not in name[len(prefix) :])


class MemoryFiles:
    """`TaskFiles` over a dict."""

    def __init__(self, content: dict[str, bytes] | None = None) -> None:
        self.content = dict(content or {})

    def read(self, path: str, offset: int = 0, most_bytes: int = MOST_BYTES_OF_FILE) -> bytes | None:
        content = self.content.get(path)
        return None if content is None else content[offset : offset + most_bytes]

    def names(self, prefix: str) -> list[str]:
        return [path for path in self.content if path.startswith(f"{prefix}/")]
