# Copyright the Tacho authors. SPDX-License-Identifier: Apache-2.0
"""Trains tacho-tales, the small story model that comes with Tacho, and writes it as GGUF.

    python train.py --work /tmp/tales                          # train, then write the F16 file
    python train.py --work /tmp/tales --requantise --types f16,q8_0,q4_0
                                                               # only write files again from the checkpoint

The work folder keeps the tokenizer and the float32 checkpoint (tales-f32.npz).
Everything is seeded; the same machine and package versions give the same bits.
"""
import argparse
import ctypes
import io
import math
import os
import time

# One thread: it makes the order of the sums, and so the result, reproducible.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("NPROC", "1")   # size of XLA's thread pool

try:
    # XLA asks for its scratch memory anew at every step. Keeping freed memory
    # in the process (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD) saves the page faults.
    libc = ctypes.CDLL(None)
    libc.mallopt(-3, 1 << 30)
    libc.mallopt(-1, (1 << 31) - 1)
except (OSError, AttributeError, TypeError):
    pass    # another C library: only slower

import numpy as np

from stories import (ANIMALS, BOYS, FOODS, GIRLS, HE_ANIMALS, OBJECTS, OBJ_ADJ, PLACES, SHE_ANIMALS, SPECIES,
                     stories)

HERE = os.path.dirname(os.path.abspath(__file__))

# ---- shape. Every row length is a multiple of 32, the block size of Q8_0 and Q4_0. ----
VOCAB, DIM, LAYERS, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, CONTEXT = 1024, 128, 4, 4, 2, 32, 352, 512
EPS, ROPE_BASE = 1e-5, 10000.0
BOS, EOS = 1, 2

TRAIN_SEED, HELD_OUT_SEED, INIT_SEED = 1, 2, 3


# ------------------------------------------------------------------ tokenizer

def train_tokenizer(texts):
    """SentencePiece BPE with byte fallback, set up as Llama 2's tokenizer is."""
    import sentencepiece as spm
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=out, model_type="bpe", vocab_size=VOCAB,
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        add_dummy_prefix=True, split_digits=True, character_coverage=1.0,
        unk_id=0, bos_id=BOS, eos_id=EOS, pad_id=-1, num_threads=1, max_sentence_length=16384,
        input_sentence_size=0, minloglevel=1)
    return out.getvalue()


def encode(sp, texts):
    """All stories as one stream: <s> story </s> <s> story </s> ..."""
    stream = []
    for ids in sp.encode(texts):
        stream += [BOS, *ids, EOS]
    return np.array(stream, dtype=np.int32)


# ------------------------------------------------------------------ model (JAX)

def init_params():
    rng = np.random.default_rng(INIT_SEED)

    def mat(rows, cols, scale=0.02 * (512 / DIM) ** 0.5):
        return rng.normal(0.0, scale, (rows, cols)).astype(np.float32)

    # Matrices are stored [out, in] as GGUF has them; the two that write into
    # the residual stream start smaller, so that depth does not blow it up.
    small = 0.02 * (512 / DIM) ** 0.5 / math.sqrt(2 * LAYERS)
    p = {"token_embd.weight": mat(VOCAB, DIM, 0.02), "output_norm.weight": np.ones(DIM, np.float32)}
    for n in range(LAYERS):
        b = f"blk.{n}."
        p[b + "attn_norm.weight"] = np.ones(DIM, np.float32)
        p[b + "attn_q.weight"] = mat(HEADS * HEAD_DIM, DIM)
        p[b + "attn_k.weight"] = mat(KV_HEADS * HEAD_DIM, DIM)
        p[b + "attn_v.weight"] = mat(KV_HEADS * HEAD_DIM, DIM)
        p[b + "attn_output.weight"] = mat(DIM, HEADS * HEAD_DIM, small)
        p[b + "ffn_norm.weight"] = np.ones(DIM, np.float32)
        p[b + "ffn_gate.weight"] = mat(HIDDEN, DIM)
        p[b + "ffn_up.weight"] = mat(HIDDEN, DIM)
        p[b + "ffn_down.weight"] = mat(DIM, HIDDEN, small)
    return p


def forward(p, tokens):
    """tokens [B, T] -> logits [B, T, VOCAB]; the output matrix is the embedding (tied)."""
    import jax
    import jax.numpy as jnp
    B, T = tokens.shape

    def norm(x, w):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPS) * w

    # RoPE turns neighbouring pairs (x[2i], x[2i+1]): that is what the GGUF
    # architecture "llama" expects, so q and k need no permutation on export.
    freq = ROPE_BASE ** (-np.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    angle = np.arange(T)[:, None] * freq[None, :]
    cos, sin = jnp.asarray(np.cos(angle), jnp.float32), jnp.asarray(np.sin(angle), jnp.float32)

    def rope(x):  # [B, T, heads, HEAD_DIM]
        a, b = x[..., 0::2], x[..., 1::2]
        c, s = cos[None, :, None, :], sin[None, :, None, :]
        return jnp.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape)

    mask = jnp.asarray(np.where(np.tril(np.ones((T, T))) > 0, 0.0, -1e9), jnp.float32)
    group = HEADS // KV_HEADS
    x = p["token_embd.weight"][tokens]
    for n in range(LAYERS):
        b = f"blk.{n}."
        h = norm(x, p[b + "attn_norm.weight"])
        q = rope((h @ p[b + "attn_q.weight"].T).reshape(B, T, HEADS, HEAD_DIM)).reshape(B, T, KV_HEADS, group, HEAD_DIM)
        k = rope((h @ p[b + "attn_k.weight"].T).reshape(B, T, KV_HEADS, HEAD_DIM))
        v = (h @ p[b + "attn_v.weight"].T).reshape(B, T, KV_HEADS, HEAD_DIM)
        # head h reads kv head h // group
        att = jnp.einsum("btkgd,bskd->bkgts", q, k) / math.sqrt(HEAD_DIM) + mask
        att = jax.nn.softmax(att, -1)
        o = jnp.einsum("bkgts,bskd->btkgd", att, v).reshape(B, T, HEADS * HEAD_DIM)
        x = x + o @ p[b + "attn_output.weight"].T
        h = norm(x, p[b + "ffn_norm.weight"])
        x = x + (jax.nn.silu(h @ p[b + "ffn_gate.weight"].T) * (h @ p[b + "ffn_up.weight"].T)) @ p[b + "ffn_down.weight"].T
    return norm(x, p["output_norm.weight"]) @ p["token_embd.weight"].T


def copy_weights(window, copyable):
    """Part 2's weight of each target: padding 0, a name or thing the story has mentioned before 4, all else 1."""
    weight = np.ones((window.shape[0], window.shape[1] - 1), np.float32)
    for row, w in zip(window, weight):
        first = np.zeros(len(row), bool)
        first[np.unique(row, return_index=True)[1]] = True
        w[(copyable[row] & ~first)[1:]] = 4.0
        w[row[1:] == 0] = 0.0
    return weight


def train(args, sp, checkpoint):
    """Trains for a fixed number of steps (not for a fixed time, so that it can be repeated).

    Part 1 learns the language from packed windows. Part 2 starts again from
    part 1's weights with windows that hold one story each, and stresses words
    that were mentioned before: that teaches the model to keep names and things
    the same through a story, which it otherwise learns much later. The last
    third of part 2 weighs all words alike again, so that it stays calibrated.
    """
    import jax
    import jax.numpy as jnp

    def loss_fn(p, window):
        logits = forward(p, window[:, :-1])
        target = window[:, 1:]
        picked = jnp.take_along_axis(logits, target[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)

    def weighted_loss(p, window, weight):
        logits = forward(p, window[:, :-1])
        picked = jnp.take_along_axis(logits, window[:, 1:, None], -1)[..., 0]
        return jnp.sum(weight * (jax.nn.logsumexp(logits, -1) - picked)) / jnp.sum(weight)

    def orthogonal(g):
        """Newton-Schulz steps towards the nearest orthogonal matrix (g: [n, rows, cols], rows <= cols)."""
        x = g / (jnp.sqrt(jnp.sum(g * g, (1, 2), keepdims=True)) + 1e-7)
        for _ in range(5):
            a = x @ x.transpose(0, 2, 1)
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x

    # The layers' matrices train with Muon, which needs far fewer steps at this
    # size; the embedding and the norms train with AdamW. Matrices of one shape
    # (or its transpose) are orthogonalised together.
    shapes = {}
    for name, x in init_params().items():
        if name.startswith("blk.") and x.ndim == 2:
            shapes.setdefault(tuple(sorted(x.shape)), []).append(name)

    def step(loss_of, p, m, v, lr, t, *data):  # lr: from 1 down to 0, scales both optimisers
        loss, g = jax.value_and_grad(loss_of)(p, *data)
        size = jnp.sqrt(sum(jnp.sum(x * x) for x in g.values()))
        scale = jnp.minimum(1.0, 1.0 / (size + 1e-6))
        p, m, v = dict(p), dict(m), dict(v)
        b1, b2, mu = 0.9, 0.97, 0.95
        for (rows, cols), names in shapes.items():
            parts = []
            for name in names:
                m[name] = mu * m[name] + g[name]
                u = g[name] + mu * m[name]
                parts.append(u if u.shape == (rows, cols) else u.T)
            for name, u in zip(names, orthogonal(jnp.stack(parts))):
                u = u if u.shape == p[name].shape else u.T
                tall = max(1.0, u.shape[0] / u.shape[1]) ** 0.5
                p[name] = p[name] * (1 - lr * args.muon_lr * 0.05) - lr * args.muon_lr * tall * u
        for name in v:
            gr = g[name] * scale
            m[name] = b1 * m[name] + (1 - b1) * gr
            v[name] = b2 * v[name] + (1 - b2) * gr * gr
            p[name] = p[name] - lr * args.lr * (m[name] / (1 - b1 ** t)) / (jnp.sqrt(v[name] / (1 - b2 ** t)) + 1e-8)
        return p, m, v, loss

    step = jax.jit(step, static_argnums=0, donate_argnums=(1, 2, 3))
    evaluate = jax.jit(loss_fn)
    held = encode(sp, stories(400, HELD_OUT_SEED))

    def held_out(p):
        n = len(held) // (CONTEXT + 1) // 8 * 8
        w = held[:n * (CONTEXT + 1)].reshape(-1, 8, CONTEXT + 1)
        return float(np.mean([evaluate(p, jnp.asarray(x)) for x in w]))

    def fresh_optimiser(p):
        return ({k: jnp.zeros_like(x) for k, x in p.items()},
                {k: jnp.zeros_like(x) for k, x in p.items() if not (k.startswith("blk.") and x.ndim == 2)})

    start, seen = time.time(), 0

    def report(part, t, loss):
        if t % 50 == 1:
            print(f"part {part} step {t} loss {float(loss):.4f} {time.time() - start:.0f}s", flush=True)
        if t % 500 == 0:
            print(f"part {part} step {t} held-out {held_out(p):.4f}", flush=True)

    # ---- part 1. Most steps see short windows (cheap attention); every fifth
    # sees the full context: without those the model fails behind position 192.
    stream, chunk, pos = np.zeros(0, np.int32), 0, 0

    def packed(batch, length):
        nonlocal stream, chunk, pos
        need = batch * length + 1
        if pos + need > len(stream):  # fresh stories; no story is ever seen twice
            stream = np.concatenate([stream[pos:], encode(sp, stories(4000, TRAIN_SEED * 1000003 + chunk))])
            chunk, pos = chunk + 1, 0
        part = stream[pos:pos + need]
        pos += need - 1
        return np.stack([part[i * length:i * length + length + 1] for i in range(batch)])

    if args.skip_part1:
        saved = np.load(checkpoint)
        p = {k: jnp.asarray(saved[k]) for k in init_params()}
    else:
        p = {k: jnp.asarray(x) for k, x in init_params().items()}
        m, v = fresh_optimiser(p)
        for t in range(1, args.steps + 1):
            length = CONTEXT if t % 5 == 0 else 192
            window = packed(args.batch_tokens // length, length)
            seen += window.size
            warm = min(1.0, t / 100)
            lr = warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * t / args.steps)))
            p, m, v, loss = step(loss_fn, p, m, v, lr, float(t), jnp.asarray(window))
            report(1, t, loss)
        np.savez(checkpoint, **{k: np.asarray(x) for k, x in p.items()})

    # ---- part 2
    words = GIRLS + BOYS + SHE_ANIMALS + HE_ANIMALS + SPECIES + ANIMALS + FOODS + \
        [w for o in OBJECTS + OBJ_ADJ for w in o.split()] + [x[0].split()[1] for x in PLACES]
    copyable = np.zeros(VOCAB, bool)
    for ids in sp.encode(words):
        copyable[ids] = True
    stream, chunk, pos = np.zeros(0, np.int32), 5000, 0    # other stories than in part 1
    pool, more, length = [], 9000, 192
    m, v = fresh_optimiser(p)
    for t in range(1, args.steps2 + 1):
        batch = args.batch_tokens // length
        if t % 5 == 0:
            window = packed(args.batch_tokens // CONTEXT, CONTEXT)
        else:
            if len(pool) < batch:
                pool += sp.encode(stories(4000, TRAIN_SEED * 1000003 + more))
                more += 1
            window = np.zeros((batch, length + 1), np.int32)   # padded with 0
            for row in window:
                ids = [BOS, *pool.pop(), EOS][:length + 1]
                row[:len(ids)] = ids
        seen += int(np.sum(window > 0))
        if t <= args.steps2 * 2 // 3 and t % 5:
            weight = copy_weights(window, copyable)
        else:
            weight = (window[:, 1:] > 0).astype(np.float32)
        lr = args.lr2 * min(1.0, t / 30) * (0.01 + 0.99 * (1 - t / args.steps2))
        p, m, v, loss = step(weighted_loss, p, m, v, lr, float(t), jnp.asarray(window), jnp.asarray(weight))
        report(2, t, loss)
    final = held_out(p)
    print(f"final held-out loss {final:.4f} after {args.steps} + {args.steps2} steps, {seen} tokens, "
          f"{time.time() - start:.0f}s", flush=True)
    return {k: np.asarray(x) for k, x in p.items()}, final


# ------------------------------------------------------------------ GGUF

def quantise_q8_0(x):
    """ggml's quantize_row_q8_0_ref: blocks of 32 as f16 d, then 32 int8."""
    b = x.astype(np.float32).reshape(-1, 32)
    d = np.abs(b).max(1) / np.float32(127)
    inv = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)
    y = b * inv[:, None]
    whole = np.floor(np.abs(y))
    q = (np.sign(y) * (whole + np.floor(2 * (np.abs(y) - whole)))).astype(np.int8)  # roundf: half away from zero
    return np.concatenate([d.astype("<f2").view(np.uint8).reshape(-1, 2), q.view(np.uint8)], 1)


def quantise_q4_0(x):
    """ggml's quantize_row_q4_0_ref: f16 d, then 16 bytes; byte j holds element j (low) and j+16 (high)."""
    b = x.astype(np.float32).reshape(-1, 32)
    top = np.take_along_axis(b, np.abs(b).argmax(1)[:, None], 1)[:, 0]  # keeps its sign; the first of equals
    d = top / np.float32(-8)
    inv = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)
    q = np.minimum(15, np.trunc(b * inv[:, None] + np.float32(8.5)).astype(np.int8)).astype(np.uint8)
    return np.concatenate([d.astype("<f2").view(np.uint8).reshape(-1, 2), q[:, :16] | (q[:, 16:] << 4)], 1)


def write_gguf(path, kind, params, tokenizer):
    import gguf
    import sentencepiece as spm
    sp = spm.SentencePieceProcessor(model_proto=tokenizer)
    types = {"f16": (gguf.LlamaFileType.MOSTLY_F16, None, None),
             "q8_0": (gguf.LlamaFileType.MOSTLY_Q8_0, gguf.GGMLQuantizationType.Q8_0, quantise_q8_0),
             "q4_0": (gguf.LlamaFileType.MOSTLY_Q4_0, gguf.GGMLQuantizationType.Q4_0, quantise_q4_0)}
    file_type, block_type, quantise = types[kind]

    w = gguf.GGUFWriter(path, "llama")
    w.add_name("tacho-tales")
    w.add_license("Apache-2.0")
    w.add_file_type(file_type)
    w.add_custom_alignment(32)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(DIM)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(HIDDEN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_layer_norm_rms_eps(EPS)
    w.add_rope_dimension_count(HEAD_DIM)
    w.add_rope_freq_base(ROPE_BASE)
    w.add_vocab_size(VOCAB)

    ids = range(sp.get_piece_size())
    w.add_tokenizer_model("llama")
    w.add_token_list([sp.id_to_piece(i).encode() for i in ids])
    w.add_token_scores([sp.get_score(i) for i in ids])
    w.add_token_types([2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in ids])
    w.add_bos_token_id(BOS)
    w.add_eos_token_id(EOS)
    w.add_unk_token_id(0)
    w.add_add_bos_token(True)
    w.add_add_eos_token(False)
    w.add_add_space_prefix(True)

    for name, x in params.items():  # norms stay F32 in every file
        if x.ndim == 1:
            w.add_tensor(name, x.astype(np.float32))
        elif quantise is None:
            w.add_tensor(name, x.astype(np.float16))
        else:
            w.add_tensor(name, quantise(x).reshape(x.shape[0], -1), raw_dtype=block_type)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print(f"wrote {os.path.basename(path)}: {os.path.getsize(path)} bytes")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--work", default="work", help="folder for the checkpoint, kept out of the repository (default: work)")
    ap.add_argument("--out", default=HERE, help="folder of tacho-tales.gguf (default: beside this script)")
    ap.add_argument("--quant-out", help="folder of tacho-tales-q8_0.gguf and -q4_0.gguf (default: the same as --out)")
    ap.add_argument("--types", default="f16", help="comma list of f16, q8_0, q4_0: the files to write (default f16)")
    ap.add_argument("--requantise", action="store_true", help="do not train; write the files from the checkpoint in --work")
    ap.add_argument("--steps", type=int, default=2300, help="optimiser steps of part 1 (default 2300)")
    ap.add_argument("--steps2", type=int, default=1400, help="optimiser steps of part 2 (default 1400)")
    ap.add_argument("--lr2", type=float, default=0.6, help="part 2 starts with this share of the learning rates (default 0.6)")
    ap.add_argument("--skip-part1", action="store_true", help="start with part 2, from part 1's checkpoint in --work")
    ap.add_argument("--batch-tokens", type=int, default=2048, help="tokens a step, a multiple of 512 (default 2048)")
    ap.add_argument("--lr", type=float, default=4e-3, help="highest learning rate of AdamW (default 4e-3)")
    ap.add_argument("--muon-lr", type=float, default=0.02, help="highest learning rate of Muon (default 0.02)")
    args = ap.parse_args()
    os.makedirs(args.work, exist_ok=True)
    checkpoint = os.path.join(args.work, "tales-f32.npz")
    if not args.requantise:
        import sentencepiece as spm
        proto = train_tokenizer(stories(20000, TRAIN_SEED))
        sp = spm.SentencePieceProcessor(model_proto=proto)
        params, final = train(args, sp, os.path.join(args.work, "tales-part1.npz"))
        np.savez(checkpoint, tokenizer=np.frombuffer(proto, np.uint8), held_out=np.float64(final), **params)
    saved = np.load(checkpoint)
    params = {k: saved[k] for k in saved.files if k not in ("tokenizer", "held_out")}
    for kind in args.types.split(","):
        if kind == "f16":
            path = os.path.join(args.out, "tacho-tales.gguf")
        else:
            path = os.path.join(args.quant_out or args.out, f"tacho-tales-{kind}.gguf")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_gguf(path, kind, params, saved["tokenizer"].tobytes())


if __name__ == "__main__":
    main()
