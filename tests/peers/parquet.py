"""Reads a dataset as others would, with pyarrow alone, and compares it with its manifest.

    python tests/peers/parquet.py DATASET

Needs pyarrow; plays the games through where python-chess is there too. Exits with 1 and a line on what differs.
"""

import hashlib
import json
import pathlib
import sys

import pyarrow
import pyarrow.parquet


def check(condition, complaint):
    if not condition:
        sys.exit(f"parquet.py: {complaint}")


def uci(token):
    geometry, promotion = divmod(token, 5)
    squares = divmod(geometry, 64)
    return "".join("abcdefgh"[s % 8] + str(s // 8 + 1) for s in squares) + ["", "q", "r", "b", "n"][promotion]


def main(folder):
    manifest = json.loads((folder / "dataset.json").read_text())
    check(manifest["format"] == "cwm-dataset", "not a dataset")
    games = plies = 0
    for shard in manifest["shards"]:
        path = folder / shard["file"]
        check(hashlib.sha256(path.read_bytes()).hexdigest() == shard["sha256"], f"{path} has another checksum")
        table = pyarrow.parquet.read_table(path)
        types = {field.name: field.type for field in table.schema}
        check(types["id"] == pyarrow.string() and types["result"] == pyarrow.string(), f"types are {types}")
        check(types["plies"] == pyarrow.uint16(), f"types are {types}")
        moves = types["moves"]
        check(pyarrow.types.is_list(moves) and moves.value_type == pyarrow.uint16(), f"types are {types}")
        rows = table.to_pylist()
        check(len(rows) == shard["games"], f"{path} has {len(rows)} games")
        check(all(len(row["moves"]) == row["plies"] for row in rows), "plies differ from the moves")
        check(sum(row["plies"] for row in rows) == shard["plies"], f"{path} has other plies")
        games, plies = games + len(rows), plies + shard["plies"]
        replay(rows)
    check(games == manifest["counts"]["games"], f"{games} games")
    check(plies == manifest["counts"]["plies"], f"{plies} plies")
    print(f"{games} games, {plies} plies")


def replay(rows):
    try:
        import chess
    except ImportError:
        return
    for row in rows:
        board = chess.Board()
        for token in row["moves"]:
            move = chess.Move.from_uci(uci(token))
            check(board.is_legal(move), f"{row['id']}: {move} is illegal at ply {board.ply()}")
            board.push(move)


if __name__ == "__main__":
    check(len(sys.argv) == 2, "give one dataset")
    main(pathlib.Path(sys.argv[1]))
