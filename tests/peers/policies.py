"""Plays the policies of core/src/chess/policy.rs anew with python-chess and prints the hash of each one's games.

    python tests/peers/policies.py [GAMES [POLICY...]]

Needs python-chess. One line a policy: its name, the SHA-256 over GAMES games of seed 0 (100 if not given) with at least
20 plies, as `moves_sha256` of a report has it, and their plies. It takes minutes; tests/src/data/policy.rs holds the
hashes of 100 games.
"""

import hashlib
import itertools
import random
import sys

import chess

HOME = {
    chess.H1: (chess.WHITE, True), chess.A1: (chess.WHITE, False),
    chess.H8: (chess.BLACK, True), chess.A8: (chess.BLACK, False),
}


def home_rook(board, move):
    if move.to_square not in HOME:
        return False
    color, king_side = HOME[move.to_square]
    has = board.has_kingside_castling_rights if king_side else board.has_queenside_castling_rights
    return color != board.turn and has(color)


def allows_en_passant(board, move):
    if board.piece_type_at(move.from_square) != chess.PAWN or abs(move.from_square - move.to_square) != 16:
        return False
    board.push(move)
    allowed = board.has_legal_en_passant()
    board.pop()
    return allowed


# What each policy wants, in order of preference.
WANTED = {
    "uniform": [],
    "castling": [lambda board, move: board.is_castling(move)],
    "en-passant": [lambda board, move: board.is_en_passant(move), allows_en_passant],
    "promotion": [lambda board, move: move.promotion is not None],
    "underpromotion": [lambda board, move: move.promotion not in (None, chess.QUEEN)],
    "home-rook-capture": [home_rook],
    "quiet": [lambda board, move: not board.is_zeroing(move)],
    "long": [],
}


def play(rng, policy):
    board = chess.Board()
    while not board.is_game_over(claim_draw=policy != "long"):
        if policy == "long" and board.ply() == 600:
            break
        moves = list(board.legal_moves)
        for wants in WANTED[policy]:
            wanted = [move for move in moves if wants(board, move)]
            if wanted:
                moves = wanted
                break
        board.push(rng.choice(moves))
    return board.move_stack


def token(move):
    promotion = {None: 0, chess.QUEEN: 1, chess.ROOK: 2, chess.BISHOP: 3, chess.KNIGHT: 4}[move.promotion]
    return (move.from_square * 64 + move.to_square) * 5 + promotion


def main(games=100, *policies):
    for policy in policies or WANTED:
        rng = random.Random(0)
        digest, plies = hashlib.sha256(), 0
        played = (play(rng, policy) for _ in itertools.count())
        for moves in itertools.islice((moves for moves in played if len(moves) >= 20), int(games)):
            digest.update((" ".join(str(t) for t in [20480, *map(token, moves)]) + "\n").encode())
            plies += len(moves)
        print(policy, digest.hexdigest(), plies, flush=True)


main(*sys.argv[1:])
