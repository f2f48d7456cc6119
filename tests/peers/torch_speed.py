"""The benchmark's models in plain PyTorch (torch_models.py), as a yardstick for speed.

Padded batches in the stored order, AdamW and clipping as the benchmark trains. Prints one JSON line with valid steps a
second of processor time, which other programs do not count into, of training and of evaluation on one thread.

    python torch_speed.py GAMES.uci [--model transformer-d128] [--batches 4] [--batch-size 128]

GAMES.uci holds one game a line, UCI moves separated by blanks (a last tab-separated field is taken).
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch import nn

from torch_models import MODELS

START, PAD = 20480, 20481
PROMOTIONS = {"": 0, "q": 1, "r": 2, "b": 3, "n": 4}


def token(uci):
    square = lambda s: ord(s[0]) - 97 + 8 * (int(s[1]) - 1)
    return (square(uci[:2]) * 64 + square(uci[2:4])) * 5 + PROMOTIONS[uci[4:]]


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
    parser.add_argument("--model", default="transformer-d128", choices=sorted(MODELS))
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()
    torch.set_num_threads(1)
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

    model = MODELS[args.model]()
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

    result = {"model": args.model, "torch": torch.__version__}
    for name, step, training in (("training", train, True), ("evaluation", grade, False)):
        model.train(training)
        step(*batches[0])
        started = time.process_time()
        for batch in batches[1:]:
            step(*batch)
        seconds = time.process_time() - started
        valid = sum(int(batch[1].sum()) for batch in batches[1:])
        padded = sum(batch[0].numel() for batch in batches[1:])
        result[name] = round(valid / seconds)
        result["padding"] = round(1 - valid / padded, 3)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
