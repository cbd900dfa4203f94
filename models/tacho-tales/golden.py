# Copyright the Tacho authors. SPDX-License-Identifier: Apache-2.0
"""Reference forward pass of tacho-tales in float64, and the golden files made with it.

    python golden.py                                    # golden.json for tacho-tales.gguf
    python golden.py --model X/tacho-tales-q8_0.gguf --out golden-q8_0.json --prompts 3 --tokens 32
    python golden.py --sample 10 --temperature 0.7      # read some stories instead

It shares no code with the training: it reads everything, the tokenizer too, from
the GGUF file, dequantises the weights, and computes the rest in float64 with
numpy. Activations are never quantised; an engine that does so (as is usual for
Q8_0 and Q4_0) will differ by more than rounding.
"""
import argparse
import hashlib
import json
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gguf
import numpy as np
import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as spb

HERE = os.path.dirname(os.path.abspath(__file__))

# Texts to choose golden prompts from: those with the clearest greedy choices win.
CANDIDATES = [
    "Once upon a time",
    "Once upon a time, there was a little girl named",
    "Once upon a time, there was a brave fox called Rusty.",
    "One day, a little boy named Tom went to the park with his red ball.",
    "One sunny morning, Mia the",
    "One night, Leo could not sleep.",
    "In a small village, there lived a",
    "In the forest, there lived a curious mouse named Dot. She loved to sing.",
    "Lily was a kind girl who",
    "Near the sea, there lived a quiet boy named Finn. One windy day, Finn found an old box",
    "One winter morning, Poppy woke up and saw that everything was white.",
    "There once was a clever rabbit named Coco. One day, Coco",
    "One day, Max saw an old woman with a heavy basket",
    "\"Who are you?\" asked Ruby. \"I am",
    "Far away, a gentle bear named Bruno lived by a blue lake. He had a golden bell that he loved very much.",
    "One evening, Nora looked up and saw a falling star. \"I wish",
    "Then it began to rain.",
    "Ben was sad. His kite was gone!",
    "One day, a shy girl called Ivy wanted to learn how to swim.",
    "\"Surprise!\" they shouted.",
]
# At least one golden prompt comes from here: characters the model never saw, so byte tokens.
BYTE_CANDIDATES = [
    "Once upon a time, a girl named Zo\u00eb lived near 7 caf\u00e9s.",
    "One day, Bj\u00f6rn the bear went to the forest with 3 apples.",
    "In a small village \u2013 far away \u2013 there lived a girl named Chlo\u00eb.",
]
# Cases for a tokenizer test: spaces, line breaks, digits, accents, other scripts, emoji.
TOKENIZER_CASES = [
    "", " ", "  ", "a", " a", "a ", "Hello, world!", "Once upon a time", " Once upon a time", "  two  spaces ",
    "line one\nline two\n\n", "tab\there", "3.14 and 2026", "caf\u00e9 na\u00efve Zo\u00eb", "\u65e5\u672c\u8a9e",
    "\U0001f600 smile \U0001f469\u200d\U0001f680", "<s> </s> <unk> <0x41>", "\u2581under\u2581score", "don't \"quote\" (this)",
    "Supercalifragilistic", "\u0000nul", "{\"json\": [1, 2]}",
]


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        kv = {name: field.contents() for name, field in reader.fields.items()}
        self.kv = kv
        self.layers = kv["llama.block_count"]
        self.heads, self.kv_heads = kv["llama.attention.head_count"], kv["llama.attention.head_count_kv"]
        self.head_dim = kv["llama.rope.dimension_count"]
        self.eps = float(kv["llama.attention.layer_norm_rms_epsilon"])
        self.base = float(kv["llama.rope.freq_base"])
        self.context = kv["llama.context_length"]
        self.bos, self.eos = kv["tokenizer.ggml.bos_token_id"], kv["tokenizer.ggml.eos_token_id"]
        self.w = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}
        self.sp = self.tokenizer()

    def tokenizer(self):
        """Builds the SentencePiece model again from what the GGUF file says about it."""
        proto = spb.ModelProto()
        kv = self.kv
        for text, score, kind in zip(kv["tokenizer.ggml.tokens"], kv["tokenizer.ggml.scores"], kv["tokenizer.ggml.token_type"]):
            proto.pieces.add(piece=text, score=score, type=kind)
        proto.trainer_spec.model_type = spb.TrainerSpec.BPE
        proto.trainer_spec.byte_fallback = True
        proto.trainer_spec.unk_id = kv["tokenizer.ggml.unknown_token_id"]
        proto.trainer_spec.bos_id, proto.trainer_spec.eos_id, proto.trainer_spec.pad_id = self.bos, self.eos, -1
        proto.normalizer_spec.name = "identity"
        proto.normalizer_spec.add_dummy_prefix = kv["tokenizer.ggml.add_space_prefix"]
        proto.normalizer_spec.remove_extra_whitespaces = False
        return spm.SentencePieceProcessor(model_proto=proto.SerializeToString())

    def norm(self, x, w):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.eps) * w

    def rope(self, x, pos):
        """x [T, heads, head_dim]; neighbouring pairs turn by pos * base^(-2i/head_dim)."""
        freq = self.base ** (-np.arange(0, self.head_dim, 2) / self.head_dim)
        c, s = np.cos(pos[:, None] * freq)[:, None], np.sin(pos[:, None] * freq)[:, None]
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
        out[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
        return out

    def run(self, ids, cache):
        """Runs ids behind what the cache holds; returns the logits of the last one."""
        w = self.w
        start = cache[0][0].shape[0] if cache else 0
        pos = np.arange(start, start + len(ids), dtype=np.float64)
        x = w["token_embd.weight"][ids]
        for n in range(self.layers):
            b = f"blk.{n}."
            h = self.norm(x, w[b + "attn_norm.weight"])
            q = self.rope((h @ w[b + "attn_q.weight"].T).reshape(len(ids), self.heads, -1), pos)
            k = self.rope((h @ w[b + "attn_k.weight"].T).reshape(len(ids), self.kv_heads, -1), pos)
            v = (h @ w[b + "attn_v.weight"].T).reshape(len(ids), self.kv_heads, -1)
            if n < len(cache):
                k, v = np.concatenate([cache[n][0], k]), np.concatenate([cache[n][1], v])
                cache[n] = (k, v)
            else:
                cache.append((k, v))
            late = np.arange(k.shape[0])[None, :] > pos[:, None]
            out = np.empty_like(q)
            for head in range(self.heads):
                kh = head * self.kv_heads // self.heads
                score = q[:, head] @ k[:, kh].T / np.sqrt(self.head_dim)
                score[late] = -np.inf
                e = np.exp(score - score.max(1, keepdims=True))
                out[:, head] = e / e.sum(1, keepdims=True) @ v[:, kh]
            x = x + out.reshape(len(ids), -1) @ w[b + "attn_output.weight"].T
            h = self.norm(x, w[b + "ffn_norm.weight"])
            gate = h @ w[b + "ffn_gate.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w[b + "ffn_up.weight"].T)) @ w[b + "ffn_down.weight"].T
        last = self.norm(x[-1], w["output_norm.weight"])
        return w.get("output.weight", w["token_embd.weight"]) @ last

    def greedy(self, ids, count):
        """Returns (ids, top five of each step, smallest gap between the best two); does not stop at </s>."""
        cache, out, tops, gap = [], [], [], np.inf
        logits = self.run(ids, cache)
        while True:
            best = np.argsort(-logits, kind="stable")[:5]
            tops.append([[int(i), round(float(logits[i]), 6)] for i in best])
            gap = min(gap, logits[best[0]] - logits[best[1]])
            out.append(int(best[0]))
            if len(out) == count:
                return out, tops, float(gap)
            logits = self.run([out[-1]], cache)

    def sample(self, prompt, temperature, rng):
        """One story; stops at </s>. Returns (text, number of new tokens, whether it ended by itself)."""
        ids = [self.bos] + self.sp.encode(prompt)
        cache, new = [], 0
        logits = self.run(ids, cache)
        while len(ids) < self.context:
            p = np.exp((logits - logits.max()) / temperature)
            token = int(rng.choice(len(p), p=p / p.sum()))
            new += 1
            if token == self.eos:
                return self.sp.decode(ids), new, True
            ids.append(token)
            logits = self.run([token], cache)
        return self.sp.decode(ids), new, False


def long_candidates(model, length):
    """Starts of long stories that the model was not trained on, cut at `length` tokens."""
    from stories import stories
    out = []
    for text in stories(600, 2):
        ids = model.sp.encode(text)
        if len(ids) > length + 60:
            out.append(model.sp.decode(ids[:length]))
    return out[:8]


def golden(model, path, args):
    def entry(prompt):
        ids = [model.bos] + model.sp.encode(prompt)
        out, tops, gap = model.greedy(ids, args.tokens)
        text = model.sp.decode(ids + out)[len(model.sp.decode(ids)):]
        return dict(prompt=prompt, prompt_ids=ids, greedy_ids=out, text=text, min_gap=round(gap, 6), top5=tops)

    def clearest(prompts, n):
        return sorted((entry(p) for p in prompts), key=lambda e: -e["min_gap"])[:n]

    chosen = clearest(CANDIDATES, args.prompts - (2 if args.prompts > 3 else 1))
    if args.prompts > 3:
        chosen += clearest(BYTE_CANDIDATES, 1)
    chosen += clearest(long_candidates(model, args.long), 1)
    result = dict(
        model=os.path.basename(path),
        sha256=hashlib.sha256(open(path, "rb").read()).hexdigest(),
        reference="float64, weights dequantised from the file, activations not quantised",
        notes="prompt_ids start with <s>; greedy_ids do not stop at </s> (the model goes on with <s> and a new story); "
              "top5 holds [id, logit] pairs, best first, of each step; text is what greedy_ids add to the prompt, "
              "control tokens left out; min_gap is the smallest distance between the best two logits",
        prompts=chosen)
    if args.prompts > 3:
        result["tokenizer_cases"] = [dict(text=t, ids=model.sp.encode(t)) for t in TOKENIZER_CASES]
    with open(args.out, "w", encoding="utf-8", newline="\n") as f:
        # one line a step would be long-winded, one line in all unreadable: one line a prompt
        head = {k: v for k, v in result.items() if k not in ("prompts", "tokenizer_cases")}
        f.write(json.dumps(head, indent=1)[:-2] + ",\n")
        for key in ("prompts", "tokenizer_cases"):
            if key in result:
                lines = ",\n".join("  " + json.dumps(e) for e in result[key])
                f.write(f' "{key}": [\n{lines}\n ]' + (",\n" if key == "prompts" and "tokenizer_cases" in result else "\n"))
        f.write("}\n")
    for e in chosen:
        print(f"gap {e['min_gap']:.4f}  {len(e['prompt_ids'])} ids  {e['prompt'][:60]!r}")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--model", default=os.path.join(HERE, "tacho-tales.gguf"), help="GGUF file (default: tacho-tales.gguf beside this script)")
    ap.add_argument("--out", default=os.path.join(HERE, "golden.json"), help="file to write (default: golden.json beside this script)")
    ap.add_argument("--prompts", type=int, default=6, help="number of prompts, one of them long (default 6)")
    ap.add_argument("--tokens", type=int, default=48, help="greedy tokens of each prompt (default 48)")
    ap.add_argument("--long", type=int, default=300, help="tokens of the long prompt (default 300)")
    ap.add_argument("--sample", type=int, metavar="N", help="print N sampled stories and write nothing")
    ap.add_argument("--temperature", type=float, default=0.7, help="temperature of --sample (default 0.7)")
    ap.add_argument("--seed", type=int, default=0, help="seed of --sample (default 0)")
    ap.add_argument("--prompt", help="prompt of --sample (default: a different opening each time)")
    args = ap.parse_args()
    model = Model(args.model)
    if args.sample is None:
        golden(model, args.model, args)
        return
    rng = np.random.default_rng(args.seed)
    openings = ["Once upon a time", "One day", "In the", "Lily", "There once was", "One night", "One sunny morning", "Far away", "Leo was", ""]
    for i in range(args.sample):
        prompt = args.prompt if args.prompt is not None else openings[i % len(openings)]
        text, new, ended = model.sample(prompt, args.temperature, rng)
        print(f"[{new} tokens, {'ended' if ended else 'cut'}] {text}\n")


if __name__ == "__main__":
    main()
