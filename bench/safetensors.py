#!/usr/bin/env python3
"""Turns a Llama model in BF16 from GGUF into a folder of Hugging Face's kind, as engines that read no GGUF need it:
model.safetensors, config.json and tokenizer.json. usage: safetensors.py FILE.gguf FOLDER

Weights stay what they are; the rows of queries and keys are put back into the order in which rotary halves are apart.
"""

import json
import mmap
import struct
import sys
from pathlib import Path

ALIGNMENT = 32
F32, BF16 = 0, 30
STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
OUTSIDE_LAYERS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


class Reader:
    """The values of a GGUF header, one after the other."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def scalar(self, letter):
        value = struct.unpack_from("<" + letter, self.data, self.at)[0]
        self.at += struct.calcsize("<" + letter)
        return value

    def string(self):
        length = self.scalar("Q")
        self.at += length
        return self.data[self.at - length:self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, count = self.scalar("I"), self.scalar("Q")
            return [self.value(inner) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def read(data):
    """Metadata, and of each tensor its name, its shape (rows first), its type and where its bytes begin."""
    reader = Reader(data)
    if data[:4] != b"GGUF":
        sys.exit("no GGUF file")
    reader.at = 8
    tensors, values = reader.scalar("Q"), reader.scalar("Q")
    metadata = {}
    for _ in range(values):
        key = reader.string()
        metadata[key] = reader.value(reader.scalar("I"))
    found = []
    for _ in range(tensors):
        name = reader.string()
        shape = [reader.scalar("Q") for _ in range(reader.scalar("I"))][::-1]
        found.append((name, shape, reader.scalar("I"), reader.scalar("Q")))
    alignment = metadata.get("general.alignment", ALIGNMENT)
    begin = (reader.at + alignment - 1) // alignment * alignment
    return metadata, [(name, shape, kind, begin + offset) for name, shape, kind, offset in found]


def new_name(name):
    stem = name.removesuffix(".weight")
    if stem in OUTSIDE_LAYERS:
        return OUTSIDE_LAYERS[stem] + ".weight"
    _, layer, part = stem.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.weight"


def halves_apart(data, rows, heads):
    """Rows 0 1 2 3 ... of each head, of which two neighbours are rotated together, as 0 2 ... 1 3 ..."""
    row, of_head = len(data) // rows, rows // heads
    order = [head * of_head + 2 * index + half for head in range(heads) for half in range(2)
             for index in range(of_head // 2)]
    return b"".join(data[at * row:(at + 1) * row] for at in order)


def converted(data, tensor, metadata):
    """The bytes of a tensor as BF16."""
    name, shape, kind, begin = tensor
    size = 1
    for length in shape:
        size *= length
    if kind == F32:
        words = data[begin:begin + 4 * size]
        result = bytearray(2 * size)
        result[0::2], result[1::2] = words[2::4], words[3::4]
        return bytes(result)
    if kind != BF16:
        sys.exit(f"{name} is neither F32 nor BF16")
    values = data[begin:begin + 2 * size]
    for part, key in (("attn_q", "llama.attention.head_count"), ("attn_k", "llama.attention.head_count_kv")):
        if f".{part}." in name:
            values = halves_apart(values, shape[0], metadata[key])
    return values


def write(file, folder):
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        metadata, tensors = read(data)
        header, at = {}, 0
        for name, shape, _, _ in tensors:
            size = 2
            for length in shape:
                size *= length
            header[new_name(name)] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "model.safetensors").open("wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            for tensor in tensors:
                out.write(converted(data, tensor, metadata))
    tokens = metadata["tokenizer.ggml.tokens"]
    llama = {key.removeprefix("llama."): value for key, value in metadata.items()}
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
              "hidden_size": llama["embedding_length"], "intermediate_size": llama["feed_forward_length"],
              "num_hidden_layers": llama["block_count"], "num_attention_heads": llama["attention.head_count"],
              "num_key_value_heads": llama["attention.head_count_kv"], "vocab_size": len(tokens),
              "max_position_embeddings": llama["context_length"],
              "rms_norm_eps": llama["attention.layer_norm_rms_epsilon"], "rope_theta": llama["rope.freq_base"],
              "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
              "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
              "tie_word_embeddings": "lm_head.weight" not in header, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    bpe = {"type": "BPE", "ignore_merges": True, "merges": metadata["tokenizer.ggml.merges"],
           "vocab": {token: at for at, token in enumerate(tokens)}}
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": bpe}),
                                           encoding="utf-8")
    (folder / "README.md").write_text(f"Made of {file.name}\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(Path(sys.argv[1]), Path(sys.argv[2]))
