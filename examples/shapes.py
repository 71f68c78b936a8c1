#!/usr/bin/env python3
"""Shapes on noise, to try segmentation with: pictures, and a mask for each.

    examples/shapes.py FOLDER [COUNT [SIDE]]      240 pictures of 64x64 unless told otherwise
    tutti train shapes.net --data images:FOLDER/pictures,masks=FOLDER/masks

Class 0 is the background, 1 discs, 2 squares; the rim of a shape, one pixel, is 255: nothing of a
class. Needs nothing but Python.
"""
import pathlib
import random
import struct
import sys
import zlib


def png(path, side, colour, pixels, palette=b""):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))

    bytes_of_row = len(pixels) // side
    rows = b"".join(b"\0" + pixels[y * bytes_of_row:(y + 1) * bytes_of_row] for y in range(side))
    path.write_bytes(b"\x89PNG\r\n\x1a\n"
                     + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, colour, 0, 0, 0))
                     + (chunk(b"PLTE", palette) if palette else b"")
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def distance(shape, x, y):
    """From the rim of a shape, negative inside."""
    kind, left, top, size, _ = shape
    across, down = abs(x - left), abs(y - top)
    return (across * across + down * down)**0.5 - size if kind == 1 else max(across, down) - size


def draw(source, side):
    """Up to three shapes that do not touch; a later one would hide them."""
    shapes = []
    for _ in range(8):
        size = side * source.uniform(0.1, 0.22)
        shape = (source.choice((1, 2)), source.uniform(size, side - size),
                 source.uniform(size, side - size), size, [source.randrange(60, 256) for _ in "rgb"])
        apart = all(max(abs(shape[1] - s[1]), abs(shape[2] - s[2])) > shape[3] + s[3] + 2
                    for s in shapes)
        if apart and len(shapes) < 3:
            shapes.append(shape)
    picture, mask = bytearray(), bytearray()
    for y in range(side):
        for x in range(side):
            near = min(shapes, key=lambda s: distance(s, x, y))
            off = distance(near, x, y)
            colour = near[4] if off < 0 else (40, 40, 40)
            noise = source.gauss(0, 30)
            picture += bytes(max(0, min(255, int(c + noise))) for c in colour)
            mask.append(255 if abs(off) < 0.5 else near[0] if off < 0 else 0)
    return bytes(picture), bytes(mask)


def make(folder, count, side, seed=1):
    source = random.Random(seed)
    (folder / "pictures").mkdir(parents=True)
    (folder / "masks").mkdir()
    palette = bytes([0, 0, 0, 200, 60, 60, 60, 60, 200]) + bytes(252 * 3) + b"\xff\xff\xff"
    for i in range(count):
        picture, mask = draw(source, side)
        png(folder / "pictures" / f"{i:03}.png", side, 2, picture)
        png(folder / "masks" / f"{i:03}.png", side, 3, mask, palette)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        raise SystemExit(__doc__)
    make(pathlib.Path(sys.argv[1]), *(int(word) for word in (sys.argv[2:] + ["240", "64"][len(sys.argv) - 2:])))
