#!/usr/bin/env python3
"""Cuts a byte-level GGUF vocabulary down to what a file of texts needs:

    excerpt_vocabulary.py VOCABULARY.gguf VECTORS.json EXCERPT.gguf EXCERPT.json.gz

A token stays if a text has it, if it is part of such a token, if it is a single byte, or if it stands in a text as a
whole. What merges into anything else never fires in these texts, so the ids stay the same but for their numbers.
"""
import gzip
import json
import struct
import sys

FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY, UINT32, INT32, BOOL = 8, 9, 4, 5, 7
MATCHED_WHOLE = (2, 3, 4)
PREFIX = "tokenizer.ggml."


def read_value(data, at, kind):
    if kind == STRING:
        length = struct.unpack_from("<Q", data, at)[0]
        return data[at + 8 : at + 8 + length].decode(), at + 8 + length
    if kind == ARRAY:
        element, count = struct.unpack_from("<IQ", data, at)
        at += 12
        values = []
        for _ in range(count):
            value, at = read_value(data, at, element)
            values.append(value)
        return values, at
    return struct.unpack_from("<" + FORMATS[kind], data, at)[0], at + struct.calcsize(FORMATS[kind])


def read_metadata(path):
    data = open(path, "rb").read()
    metadata, at = {}, 24
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        key, at = read_value(data, at, STRING)
        kind = struct.unpack_from("<I", data, at)[0]
        metadata[key], at = read_value(data, at + 4, kind)
    return metadata


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def array(kind, elements):
    return struct.pack("<IQ", kind, len(elements)) + b"".join(elements)


def main():
    metadata = read_metadata(sys.argv[1])
    cases = json.load(open(sys.argv[2]))["cases"]
    tokens, types = metadata[PREFIX + "tokens"], metadata[PREFIX + "token_type"]
    id_keys = [PREFIX + name for name in ("bos_token_id", "eos_token_id") if PREFIX + name in metadata]
    used = {id for case in cases for id in case["ids"] + case.get("ids_with_special", [])}
    used |= {metadata[key] for key in id_keys}
    parts = {tokens[id][a:b] for id in used for a in range(len(tokens[id])) for b in range(a + 1, len(tokens[id]) + 1)}
    texts = " ".join(case["text"] for case in cases)
    kept = [
        id
        for id, token in enumerate(tokens)
        if id in used or token in parts or len(token) == 1 or (types[id] in MATCHED_WHOLE and token in texts)
    ]
    number = {id: index for index, id in enumerate(kept)}
    kept_texts = {tokens[id] for id in kept}
    merges = [merge for merge in metadata[PREFIX + "merges"] if merge[0] + merge[1:].replace(" ", "", 1) in kept_texts]

    entries = [(PREFIX + name, STRING, text(metadata[PREFIX + name])) for name in ("model", "pre")]
    entries.append((PREFIX + "tokens", ARRAY, array(STRING, [text(tokens[id]) for id in kept])))
    entries.append((PREFIX + "token_type", ARRAY, array(INT32, [struct.pack("<i", types[id]) for id in kept])))
    entries.append((PREFIX + "merges", ARRAY, array(STRING, [text(merge) for merge in merges])))
    entries += [(key, UINT32, struct.pack("<I", number[metadata[key]])) for key in id_keys]
    for key in (PREFIX + "add_bos_token", PREFIX + "add_eos_token"):
        if key in metadata:
            entries.append((key, BOOL, struct.pack("<?", metadata[key])))
    with open(sys.argv[3], "wb") as out:
        out.write(struct.pack("<4sIQQ", b"GGUF", 3, 0, len(entries)))
        for key, kind, raw in entries:
            out.write(text(key) + struct.pack("<I", kind) + raw)

    for case in cases:
        for key in ("ids", "ids_with_special"):
            if key in case:
                case[key] = [number[id] for id in case[key]]
    kept_keys = ("name", "text", "ids", "ids_with_special")
    excerpt = {"cases": [{key: case[key] for key in kept_keys if key in case} for case in cases]}
    with open(sys.argv[4], "wb") as out:
        out.write(gzip.compress(json.dumps(excerpt, ensure_ascii=False).encode(), 9, mtime=0))


main()
