"""Reads TensorBoard event files without the code that wrote them, and checks every checksum."""

import struct
from pathlib import Path
from typing import NamedTuple


class Scalar(NamedTuple):
    wall_time: float
    step: int
    tag: str
    value: float


def read_scalars(path: Path) -> list[Scalar]:
    """All complete scalar events; a record that is still being written is left out."""
    data, at, scalars = path.read_bytes(), 0, []
    while len(data) - at >= 12:
        (length,) = struct.unpack_from("<Q", data, at)
        if len(data) - at < 16 + length:
            break
        event = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 8) == (_masked(_crc32c(data[at : at + 8])),)
        assert struct.unpack_from("<I", data, at + 12 + length) == (_masked(_crc32c(event)),)
        at += 16 + length
        fields = _fields(event)
        if 5 in fields:
            value = _fields(_fields(fields[5])[1])
            (wall_time,), (number,) = struct.unpack("<d", fields[1]), struct.unpack("<f", value[2])
            scalars.append(Scalar(wall_time, int.from_bytes(fields[2], "little"), value[1].decode(), number))
    return scalars


def _fields(message: bytes) -> dict[int, bytes]:
    fields, at = {}, 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            number, at = _varint(message, at)
            fields[key >> 3] = number.to_bytes(8, "little")
            continue
        size, at = _varint(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        fields[key >> 3] = message[at : at + size]
        at += size
    return fields


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (message[at] & 0x7F) << shift
        shift += 7
        at += 1
        if message[at - 1] < 0x80:
            return number, at


def _crc32c(data: bytes) -> int:
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = (remainder >> 1) ^ (0x82F63B78 * (remainder & 1))
    return remainder ^ 0xFFFFFFFF


def _masked(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32
