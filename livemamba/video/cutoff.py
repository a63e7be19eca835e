"""Does a file end before its own headers say it does?

A decoder reads what is there and stops without a word, so a copy that broke off at 60 % looks like a short
clip. Containers state how long their parts are; this walks those statements without reading the content.
Sources: ISO/IEC 14496-12, 4.2 (mp4, mov); RFC 8794, 4 and 6.2 (mkv, webm); AVI RIFF file reference; ISO/IEC
13818-1, 2.4.3.2 (ts).
"""

import struct
from pathlib import Path
from typing import BinaryIO

_BOXES = frozenset((b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"moof", b"styp", b"pnot", b"uuid"))
_EBML = b"\x1a\x45\xdf\xa3"
_TS_PACKET = 188
_TS_SYNC = b"\x47"


def missing_bytes(path: Path) -> int:
    """How many bytes the container's own headers promise beyond the end of the file.

    0 also where that can't be told: other containers, streams recorded without lengths, and files cut exactly
    between two parts. For mpegts it is what the last packet lacks.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(2 * _TS_PACKET)
        if head[4:8] in _BOXES:
            end = _end_of_boxes(file, size)
        elif head.startswith(_EBML):
            end = _end_of_ebml(file, size)
        elif head.startswith(b"RIFF") and head[8:12] == b"AVI ":
            end = 8 + int.from_bytes(head[4:8], "little")
        elif head[:1] == _TS_SYNC and head[_TS_PACKET : _TS_PACKET + 1] == _TS_SYNC:
            end = -(-size // _TS_PACKET) * _TS_PACKET
        else:
            end = size
    return max(0, end - size)


def _end_of_boxes(file: BinaryIO, size: int) -> int:
    """Where the last top-level box of an mp4 ends; less than a header's worth of tail is padding."""
    position = 0
    while position + 8 <= size:
        file.seek(position)
        header = file.read(16)
        length = int.from_bytes(header[:4], "big")
        if length == 1 and len(header) == 16:
            length = struct.unpack(">Q", header[8:])[0]
        if length < 8:
            return size  # 0 means up to the end; anything else isn't a box, so nothing can be told
        position += length
    return position


def _end_of_ebml(file: BinaryIO, size: int) -> int:
    """Where the last top-level element of a Matroska file ends."""
    position = 0
    while position < size:
        file.seek(position)
        element_id = _variable_int(file)
        length = _variable_int(file)
        if element_id is None or length is None:
            return size
        position = file.tell() + length
    return position


def _variable_int(file: BinaryIO) -> int | None:
    """An EBML number without its length marker; None at the end, if broken, or if it means "unknown"."""
    first = file.read(1)
    if not first or not first[0]:
        return None
    extra = 8 - first[0].bit_length()
    rest = file.read(extra)
    if len(rest) < extra:
        return None
    bits = 7 * (extra + 1)
    value = int.from_bytes(first + rest, "big") & ((1 << bits) - 1)
    return None if value == (1 << bits) - 1 else value


def lacks_mp4_index(path: Path) -> bool:
    """Whether this is an mp4 or mov whose index (the moov box) isn't in the file: cut off, or never closed."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(8)[4:8] not in _BOXES:
            return False
        position = 0
        while position + 8 <= size:
            file.seek(position)
            length, kind = struct.unpack(">I4s", file.read(8))
            if kind == b"moov":
                return False
            if length == 1:
                length = int.from_bytes(file.read(8), "big")
            position += length if length >= 8 else size
    return True
