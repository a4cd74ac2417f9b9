"""PNG files as browsers make them, in fewer bytes: with a palette, enough for a page of a few plain colours."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MOST = 256
#: Of colours that are rarer each channel keeps so many bits, so that a table of all of them stays short.
_KEPT = 0xF8


def small(png: bytes) -> bytes:
    """The same picture with at most 256 colours: the commonest as they are, others as the nearest of these."""
    width, height, channels, rows = _read(png)
    pixels = [bytes(row[at : at + 3]) for row in rows for at in range(0, width * channels, channels)]
    counts = Counter(pixels)
    palette = [colour for colour, _ in counts.most_common(_MOST)]
    index = {colour: number for number, colour in enumerate(palette)}
    near: dict[bytes, int] = {}
    for colour in counts:
        if colour not in index:
            rough = bytes(each & _KEPT for each in colour)
            if rough not in near:
                near[rough] = _nearest(palette, colour)
            index[colour] = near[rough]
    data = bytes(map(index.__getitem__, pixels))
    # A palette's numbers are no neighbours of each other, so no filter helps.
    lines = b"".join(b"\x00" + data[at : at + width] for at in range(0, width * height, width))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _nearest(palette: list[bytes], colour: bytes) -> int:
    def distance(number: int) -> int:
        return sum((a - b) ** 2 for a, b in zip(palette[number], colour, strict=True))

    return min(range(len(palette)), key=distance)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _read(png: bytes) -> tuple[int, int, int, list[bytearray]]:
    """Width, height, bytes a pixel, and each row's bytes, of a picture with eight bits a channel and no interlacing."""
    parts = list(_chunks(png))
    width, height, depth, kind, *_, interlaced = struct.unpack(">IIBBBBB", dict(parts)[b"IHDR"])
    if depth != 8 or kind not in (2, 6) or interlaced:
        raise ValueError("not a picture as Chromium makes them")
    channels = {2: 3, 6: 4}[kind]
    packed, length = zlib.decompress(b"".join(data for name, data in parts if name == b"IDAT")), width * channels
    rows, before = list[bytearray](), bytearray(length)
    for number in range(height):
        start = number * (length + 1)
        before = _unfiltered(packed[start], bytearray(packed[start + 1 : start + 1 + length]), before, channels)
        rows.append(before)
    return width, height, channels, rows


def _unfiltered(kind: int, row: bytearray, above: bytearray, step: int) -> bytearray:
    for at in range(len(row)):
        left, corner = (row[at - step], above[at - step]) if at >= step else (0, 0)
        match kind:
            case 0:
                break
            case 1:
                guess = left
            case 2:
                guess = above[at]
            case 3:
                guess = (left + above[at]) // 2
            case _:
                guess = _paeth(left, above[at], corner)
        row[at] = (row[at] + guess) & 0xFF
    return row


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    distances = (abs(guess - left), 0, left), (abs(guess - above), 1, above), (abs(guess - corner), 2, corner)
    return min(distances)[2]
