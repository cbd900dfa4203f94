#!/usr/bin/env python3
"""Writes quants_cases.bin from a JSON file of block-format cases made with ggml: quants_cases.py IN.json OUT.bin

Little-endian: "TQC1", then per activation vector 'A' int32 n, float[n]; per case 'C' int32 dtype, n, bytes,
double dot, dot_abs, uint8 name_length, name, uint8[bytes] blocks, float[n] values.
"""
import base64
import json
import struct
import sys

TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K")


def main(source, target):
    with open(source, encoding="utf-8") as file:
        data = json.load(file)
    out = bytearray(b"TQC1")
    types = data["types"]
    cases = [(name, types[name]["ggml_type_id"], case) for name in TYPES for case in types[name]["cases"]]
    for n in sorted({case["n"] for _, _, case in cases}):
        out += b"A" + struct.pack("<i", n) + base64.b64decode(data["activations"][str(n)]["y_f32"])
    for type_name, dtype, case in cases:
        blocks = base64.b64decode(case["bytes"])
        name = f"{type_name} {case['case']}".encode("ascii")
        out += b"C" + struct.pack("<iii", dtype, case["n"], len(blocks))
        out += struct.pack("<ddB", case["dot_f64"], case["dot_abs_f64"], len(name))
        out += name + blocks + base64.b64decode(case["f32"])
    with open(target, "wb") as file:
        file.write(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
