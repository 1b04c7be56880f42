"""TensorBoard event files: framed, checksummed records of scalar values that can be followed while they grow."""

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

_POLYNOMIAL = 0x82F63B78  # CRC-32C, reflected
_MASK_DELTA = 0xA282EAD8


def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _crc_table()


def masked_crc32c(data: bytes) -> int:
    """CRC-32C of ``data``, rotated and offset as the record format demands."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def version_event(wall_time: float) -> bytes:
    """The event that opens a file."""
    source = _bytes_field(1, b"tensorboard.summary.writer.event_file_writer")
    return _wall_time(wall_time) + _bytes_field(3, b"brain.Event:2") + _bytes_field(10, source)


def scalar_event(wall_time: float, step: int, tag: str, value: float) -> bytes:
    """One scalar; ``wall_time`` in seconds since 1970."""
    summary_value = _bytes_field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
    summary = _bytes_field(1, summary_value)
    return _wall_time(wall_time) + b"\x10" + _varint(step) + _bytes_field(5, summary)


def record(data: bytes) -> bytes:
    """Frame one event: length, checksum of the length, data, checksum of the data."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def _wall_time(seconds: float) -> bytes:
    return b"\x09" + struct.pack("<d", seconds)


def _bytes_field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class EventFile:
    """A new event file in ``directory``; close it or use it as a context manager."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}.0"
        self._file = (directory / name).open("wb")
        self._write(version_event(now))

    def add_scalars(self, step: int, scalars: Mapping[str, float]) -> None:
        """Append one event per tag, all with the same time, and flush."""
        now = time.time()
        self._write(*(scalar_event(now, step, tag, value) for tag, value in scalars.items()))

    def _write(self, *events: bytes) -> None:
        self._file.write(b"".join(record(event) for event in events))
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
