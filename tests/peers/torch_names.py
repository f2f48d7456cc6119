"""`cwm export --format torch-names` against PyTorch: what it writes loads unchanged and names the same states.

    python tests/peers/torch_names.py CWM CHECKPOINT...      CWM is the binary, CHECKPOINT anything that cwm export takes

Each checkpoint is exported and loaded, strictly, into the plain PyTorch network of its family in torch_models.py, whose
parameters have the reference's names. Along a few games both must name the same 75 labels, but for ties of logits within 1e-4.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file

from torch_models import of_config
from torch_speed import START, token

GAMES = [
    "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 f8e7 f1e1 b7b5 a4b3 d7d6 c2c3 e8g8 h2h3 c6b8 d2d4 b8d7",
    "h2h4 g7g5 h4g5 h7h6 g5h6 g8f6 h6h7 f6g8 h7g8q h8g8 h1h8 g8h8 a2a4 b7b5 a4b5 a7a5 b5a6 h8h1 a6a7 h1g1 a7b8n g1f1",
    "d2d4 d7d5 " + "g1f3 g8f6 f3g1 f6g8 " * 30,
]
CLASSES = [13] * 64 + [2] * 5 + [9, 3] + [256] * 4


def cwm(binary, *args):
    return subprocess.run([binary, *map(str, args)], check=True, capture_output=True, text=True).stdout


def check(binary, checkpoint, scratch):
    folder = scratch / "exported"
    cwm(binary, "export", checkpoint, "--out", folder, "--force", "--format", "torch-names")
    tensors = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    assert all(tensor.dtype == torch.float32 for tensor in tensors.values())
    model = of_config(config)
    model.load_state_dict(tensors, strict=True)
    model.eval()
    steps = ties = 0
    for game in GAMES:
        tokens = torch.tensor([[START] + [token(uci) for uci in game.split()]])
        with torch.no_grad():
            logits = model(tokens)[0]
        trace = json.loads(cwm(binary, "predict", folder, "--uci", game, "--format", "json"))
        assert len(trace["steps"]) == len(logits)
        for step, row in zip(trace["steps"], logits):
            heads = row.split(CLASSES)
            best = [int(head.argmax()) for head in heads]
            close = [float(head.topk(2).values.diff().abs()) < 1e-4 for head in heads]
            named = labels_of(step["predicted"])
            if 0 in (best[69], best[70]):
                # A FEN has no place for half an en passant square.
                best[69] = best[70] = 0
            assert len(named) == len(best) == 75
            for label, (found, expected) in enumerate(zip(named, best)):
                assert found == expected or close[label], (step["ply"], label, found, expected)
                ties += found != expected
            steps += 1
    print(f"{checkpoint}: {len(tensors)} tensors load, {steps} steps agree, {ties} ties fell the other way")


def labels_of(fen):
    """The 75 labels of a FEN as cwm writes it."""
    board, side, rights, passant, halfmoves, fullmoves = fen.split()
    labels = []
    for symbol in board.replace("/", ""):
        labels += [0] * int(symbol) if symbol.isdigit() else [" PNBRQKpnbrqk".index(symbol)]
    labels.append("wb".index(side))
    labels += [int(right in rights) for right in "KQkq"]
    labels += [0, 0] if passant == "-" else [1 + "abcdefgh".index(passant[0]), 1 + "36".index(passant[1])]
    for clock in (halfmoves, fullmoves):
        labels += divmod(int(clock), 256)
    return labels


def main():
    binary, *checkpoints = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        for checkpoint in checkpoints:
            check(binary, checkpoint, pathlib.Path(scratch))


if __name__ == "__main__":
    main()
