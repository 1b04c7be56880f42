"""A reader of TensorBoard event files, for scalars only.

TensorBoard itself needs a newer protobuf than the Python worker of Azure Functions carries, and the app would load
without any function. The format: records of length (8 bytes, little endian), CRC of the length (4), data, CRC of the
data (4); the data is a protocol buffer `Event {1: wall_time double, 2: step int64, 5: Summary}` with
`Summary {1: Value {1: tag string, 2: simple_value float}}`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
#: Scalars take less than 1 KiB. What is longer than this holds pictures, and its data is not looked at.
_LONGEST_WITH_SCALARS = 16 * 1024
#: No protocol buffer is longer.
_LONGEST = 2**31


@dataclass(frozen=True)
class Scalar:
    """One logged value. `wall_time` is in seconds since 1970 (UTC)."""

    tag: str
    step: int
    wall_time: float
    value: float


@dataclass(frozen=True)
class Stretch:
    """What a stretch of a file holds that begins with a record."""

    scalars: tuple[Scalar, ...]
    length: int
    """bytes of its whole records: there the next one begins, which is cut off, damaged, or not there yet"""
    picture_length: int = 0
    """bytes of that next one if it holds pictures: behind it the reading can go on"""
    bytes_looked_at: int = 0
    """of its records: that is what takes time"""


def stretch(content: bytes, start: int = 0) -> Stretch:
    """All records from `start` to the end, or to the first that is cut off or damaged (the file may still grow)."""
    found: list[Scalar] = []
    position, picture_length, looked_at = start, 0, 0
    while position + _HEADER.size <= len(content):
        length, length_crc = _HEADER.unpack_from(content, position)
        if length > _LONGEST or _masked_crc(content[position : position + 8]) != length_crc:
            break
        data_start = position + _HEADER.size
        data_end = data_start + length
        end = data_end + _CRC.size
        if end > len(content):
            picture_length = end - position if length > _LONGEST_WITH_SCALARS else 0
            break
        if length <= _LONGEST_WITH_SCALARS:
            data = content[data_start:data_end]
            if _masked_crc(data) != _CRC.unpack_from(content, data_end)[0]:
                break
            found += _scalars(data)
            looked_at += end - position
        position = end
    return Stretch(tuple(found), position - start, picture_length, looked_at)


def _scalars(data: bytes) -> list[Scalar]:
    """Of one event; of what was written whole but is no such event: none."""
    try:
        return _event(data)
    except (ValueError, struct.error):
        return []


def _event(data: bytes) -> list[Scalar]:
    wall_time, step = 0.0, 0
    values: list[tuple[str, float]] = []
    for number, wire_type, field in _fields(data):
        if (number, wire_type) == (1, _FIXED64):
            wall_time = struct.unpack("<d", field)[0]
        elif (number, wire_type) == (2, _VARINT):
            step = int.from_bytes(field, "little", signed=True)
        elif (number, wire_type) == (5, _BYTES):
            values.extend(_summary(field))
    return [Scalar(tag, step, wall_time, value) for tag, value in values]


def _summary(data: bytes) -> Iterator[tuple[str, float]]:
    for number, wire_type, field in _fields(data):
        if (number, wire_type) != (1, _BYTES):
            continue
        tag, value = "", None
        for inner, inner_type, content in _fields(field):
            if (inner, inner_type) == (1, _BYTES):
                tag = content.decode("utf-8", "replace")
            elif (inner, inner_type) == (2, _FIXED32):
                value = struct.unpack("<f", content)[0]
        if value is not None:
            yield tag, value


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Field number, wire type and content; a varint's content is its 8 bytes, little endian."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, wire_type, value.to_bytes(8, "little")
            continue
        if wire_type == _BYTES:
            length, position = _varint(data, position)
        elif wire_type in (_FIXED64, _FIXED32):
            length = 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError("unknown wire type")
        if position + length > len(data):
            raise ValueError("field is cut off")
        yield number, wire_type, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at `position`, at most 64 bits, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
    raise ValueError("number is cut off")


def _crc32c_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _crc32c_table()


def _masked_crc(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and offset as TFRecord files store it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
