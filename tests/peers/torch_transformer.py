"""The benchmark's d128/l1 Transformer in plain PyTorch, as a yardstick for speed.

Written from the description of the architecture (docs/formats.md, models/src); scaled_dot_product_attention,
padded batches in the stored order, AdamW and clipping as the benchmark trains. Prints one JSON line with
valid steps a second of training and of evaluation.

    python torch_transformer.py GAMES.uci [--batches 6] [--batch-size 128] [--threads 2]

GAMES.uci holds one game a line, UCI moves separated by blanks (a last tab-separated field is taken).
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch import nn

START, PAD, VOCAB, LOGITS = 20480, 20481, 20482, 1878
PROMOTIONS = {"": 0, "q": 1, "r": 2, "b": 3, "n": 4}


def token(uci):
    square = lambda s: ord(s[0]) - 97 + 8 * (int(s[1]) - 1)
    return (square(uci[:2]) * 64 + square(uci[2:4])) * 5 + PROMOTIONS[uci[4:]]


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-6)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def rotate(self, x, cos, sin):
        pairs = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
        return x * cos + pairs * sin

    def forward(self, x, cos, sin, dropout):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.out_proj(y.transpose(1, 2).reshape(b, t, d))


class Mlp(nn.Module):
    def __init__(self, width, factor):
        super().__init__()
        self.in_proj = nn.Linear(width, 2 * factor * width)
        self.out_proj = nn.Linear(factor * width, width)

    def forward(self, x):
        gate, value = self.in_proj(x).chunk(2, -1)
        return self.out_proj(F.silu(gate) * value)


class Block(nn.Module):
    def __init__(self, width, heads, factor, dropout):
        super().__init__()
        self.dropout = dropout
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attn, self.mlp = Attention(width, heads), Mlp(width, factor)

    def forward(self, x, cos, sin):
        p = self.dropout if self.training else 0.0
        x = x + F.dropout(self.attn(self.norm1(x), cos, sin, p), p)
        return x + F.dropout(self.mlp(self.norm2(x)), p)


class Model(nn.Module):
    """Its parameters have the names that the benchmark's reference gives them."""

    def __init__(self, width=128, layers=1, heads=2, factor=4, dropout=0.1):
        super().__init__()
        self.tok_emb = nn.Embedding(VOCAB, width)
        self.blocks = nn.ModuleList(Block(width, heads, factor, dropout) for _ in range(layers))
        self.final_norm, self.output_head = RmsNorm(width), nn.Linear(width, LOGITS)
        self.frequencies = 1e4 ** (-torch.arange(0, width // heads, 2) / (width // heads))

    def forward(self, tokens):
        angles = torch.arange(tokens.shape[1])[:, None] * self.frequencies
        angles = torch.cat((angles, angles), -1)
        x = self.tok_emb(tokens)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        return self.output_head(self.final_norm(x))


def heads(logits, labels):
    """Pairs of logits [N, C] and classes [N] for each run of labels with equal class counts."""
    start = label = 0
    for count, classes in ((64, 13), (1, 2), (4, 2), (1, 9), (1, 3), (4, 256)):
        part = logits[:, start : start + count * classes].reshape(-1, classes)
        yield part, labels[:, label : label + count].reshape(-1)
        start, label = start + count * classes, label + count


def loss_of(logits, labels):
    total = sum(F.cross_entropy(part, classes, reduction="sum") for part, classes in heads(logits, labels))
    return total / labels.numel()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games")
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    batches = []
    with open(args.games) as file:
        lines = [line.rstrip("\n").split("\t")[-1].split() for line in file]
    for i in range(args.batches):
        games = lines[i * args.batch_size : (i + 1) * args.batch_size]
        longest = max(map(len, games)) + 1
        tokens = torch.full((len(games), longest), PAD)
        for row, game in enumerate(games):
            tokens[row, : len(game) + 1] = torch.tensor([START] + [token(m) for m in game])
        # Speed does not depend on what the labels are: any classes in range will do.
        labels = torch.randint(0, 2, (int((tokens != PAD).sum()), 75))
        batches.append((tokens, tokens != PAD, labels))

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.0)

    def train(tokens, valid, labels):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(tokens)[valid], labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    @torch.no_grad()
    def grade(tokens, valid, labels):
        logits = model(tokens)[valid]
        loss_of(logits, labels).item()
        for part, classes in heads(logits, labels):
            (part.argmax(-1) == classes).sum().item()

    result = {"torch": torch.__version__, "threads": args.threads}
    for name, step, training in (("training", train, True), ("evaluation", grade, False)):
        model.train(training)
        step(*batches[0])
        started = time.perf_counter()
        for batch in batches[1:]:
            step(*batch)
        seconds = time.perf_counter() - started
        valid = sum(int(batch[1].sum()) for batch in batches[1:])
        padded = sum(batch[0].numel() for batch in batches[1:])
        result[f"{name}_valid_steps_per_sec"] = round(valid / seconds)
        result["padding"] = round(1 - valid / padded, 3)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
