#!/usr/bin/env python3
"""Copies the metadata of a GGUF file (version 2 or 3) and leaves its tensors out: strip_tensors.py IN OUT"""
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def skip(data, at, kind):
    if kind == 8:
        return at + 8 + struct.unpack_from("<Q", data, at)[0]
    if kind == 9:
        element, count = struct.unpack_from("<IQ", data, at)
        at += 12
        if element in SIZES:
            return at + SIZES[element] * count
        for _ in range(count):
            at = skip(data, at, element)
        return at
    return at + SIZES[kind]


def main():
    data = open(sys.argv[1], "rb").read()
    magic, version, _, count = struct.unpack_from("<4sIQQ", data, 0)
    at = 24
    for _ in range(count):
        at = skip(data, at, 8)
        kind = struct.unpack_from("<I", data, at)[0]
        at = skip(data, at + 4, kind)
    with open(sys.argv[2], "wb") as out:
        out.write(struct.pack("<4sIQQ", magic, version, 0, count))
        out.write(data[24:at])


main()
