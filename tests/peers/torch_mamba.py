"""Mamba-2 and Mamba-3 in plain PyTorch, written from their description (docs/models.md): the recurrence, step by step.

Parameters have the names that the benchmark's reference gives them. torch_models.py offers these networks by preset.
"""

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LOGITS = 20482, 1878


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


class GatedMlp(nn.Module):
    def __init__(self, width, factor):
        super().__init__()
        inside = (factor * width + 127) // 128 * 128
        self.fc1 = nn.Linear(width, 2 * inside, bias=False)
        self.fc2 = nn.Linear(inside, width, bias=False)

    def forward(self, x):
        value, gate = self.fc1(x).chunk(2, -1)
        return self.fc2(value * F.silu(gate))


def recurrence(decay, keys, values, queries):
    """`S = decay S + keys^T values`, `y = queries S`: decay [B, T, H], the others [B, T, H, R, ..]."""
    games, _, heads, _, width = values.shape
    state = values.new_zeros(games, heads, keys.shape[-1], width)
    out = []
    # Views once, not once a step.
    parts = (decay[..., None, None], keys.transpose(-1, -2), values, queries)
    for a, k, v, q in zip(*(part.unbind(1) for part in parts)):
        state = a * state + k @ v
        out.append(q @ state)
    return torch.stack(out, 1)


class Mamba2Mixer(nn.Module):
    def __init__(self, width, n=128, p=64, taps=4, expand=2):
        super().__init__()
        inner = expand * width
        self.inner, self.n, self.p, self.heads = inner, n, p, inner // p
        channels = inner + 2 * n
        self.in_proj = nn.Linear(width, inner + channels + self.heads, bias=False)
        self.conv1d = nn.Conv1d(channels, channels, taps, groups=channels, padding=taps - 1)
        self.dt_bias = nn.Parameter(torch.full((self.heads,), -4.0))
        self.A_log = nn.Parameter(torch.log(torch.linspace(1, 16, self.heads)))
        self.D = nn.Parameter(torch.ones(self.heads))
        self.norm = RmsNorm(inner)
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        games, steps, _ = x.shape
        z, seen, dt = self.in_proj(x).split((self.inner, self.inner + 2 * self.n, self.heads), -1)
        seen = F.silu(self.conv1d(seen.transpose(1, 2))[..., :steps].transpose(1, 2))
        x, b, c = seen.split((self.inner, self.n, self.n), -1)
        x = x.reshape(games, steps, self.heads, 1, self.p)
        dt = F.softplus(dt + self.dt_bias)
        keys, queries = (rows.reshape(games, steps, 1, 1, self.n) for rows in (b, c))
        y = recurrence(torch.exp(-self.A_log.exp() * dt), keys, x * dt[..., None, None], queries)
        y = (y + self.D[:, None, None] * x).reshape(games, steps, self.inner)
        return self.out_proj(self.norm(y * F.silu(z)))


class Mamba3Mixer(nn.Module):
    """One input a step, or `rank` of them."""

    def __init__(self, width, rank=None, n=128, p=64, expand=2):
        super().__init__()
        inner = expand * width
        self.inner, self.n, self.p, self.heads = inner, n, p, inner // p
        self.mimo, self.rank = rank is not None, rank or 1
        keys = self.rank * n
        self.sizes = (inner, inner, keys, keys, self.heads, self.heads, self.heads, n // 4)
        self.in_proj = nn.Linear(width, sum(self.sizes), bias=False)
        self.dt_bias = nn.Parameter(torch.full((self.heads,), -4.0))
        self.B_norm, self.C_norm = RmsNorm(n), RmsNorm(n)
        self.B_bias = nn.Parameter(torch.ones(self.heads, self.rank, n))
        self.C_bias = nn.Parameter(torch.ones(self.heads, self.rank, n))
        self.D = nn.Parameter(torch.ones(self.heads))
        if self.mimo:
            shape = (self.heads, self.rank, p)
            self.mimo_x, self.mimo_o = (nn.Parameter(torch.full(shape, 1 / self.rank)) for _ in range(2))
            self.mimo_z = nn.Parameter(torch.ones(shape))
        self.out_proj = nn.Linear(inner, width, bias=False)

    def turn(self, x, cos, sin):
        quarter = self.n // 4
        if self.mimo:
            a, c, b, d = x.split(quarter, -1)
            return torch.cat((a * cos - b * sin, c, a * sin + b * cos, d), -1)
        a, b, rest = x[..., : 2 * quarter : 2], x[..., 1 : 2 * quarter : 2], x[..., 2 * quarter :]
        pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
        return torch.cat((pairs, rest), -1)

    def forward(self, x):
        games, steps, _ = x.shape
        z, x, b, c, dt, a, trap, angle = self.in_proj(x).split(self.sizes, -1)
        dt = F.softplus(dt + self.dt_bias)
        decay = torch.exp(-F.softplus(a).clamp_min(1e-4) * dt)
        now = trap.sigmoid() * dt
        later = F.pad((dt - now)[:, 1:], (0, 0, 0, 1))
        angles = (torch.pi * angle.tanh()[:, :, None] * dt[..., None]).cumsum(1)[..., None, :]
        cos, sin = angles.cos(), angles.sin()
        rows = (games, steps, 1, self.rank, self.n)
        keys = self.turn(self.B_norm(b.reshape(rows)) + self.B_bias, cos, sin)
        queries = self.turn(self.C_norm(c.reshape(rows)) + self.C_bias, cos, sin)
        x, z = (part.reshape(games, steps, self.heads, 1, self.p) for part in (x, z))
        values = x * self.mimo_x if self.mimo else x
        # The state counts `now + later` of a step; the step itself sees but `now`.
        y = recurrence(decay, keys, values * (now + later)[..., None, None], queries)
        own = (queries @ keys.transpose(-1, -2)) @ values
        y = y - own * later[..., None, None] + self.D[:, None, None] * values
        y = (y * F.silu(z * self.mimo_z) * self.mimo_o).sum(-2) if self.mimo else y * F.silu(z)
        return self.out_proj(y.reshape(games, steps, self.inner))


class Block(nn.Module):
    def __init__(self, width, mixer, factor):
        super().__init__()
        self.norm, self.mixer = RmsNorm(width), mixer
        self.norm2, self.mlp = RmsNorm(width), GatedMlp(width, factor)

    def forward(self, x):
        x = x + self.mixer(self.norm(x))
        return x + self.mlp(self.norm2(x))


class Mamba(nn.Module):
    """`mixer` makes a mixer of a width; dropout is of embeddings alone."""

    def __init__(self, width, layers, mixer, factor=4, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.embedding = nn.Embedding(VOCAB, width)
        self.layers = nn.Sequential(*(Block(width, mixer(width), factor) for _ in range(layers)))
        self.final_norm, self.output_head = RmsNorm(width), nn.Linear(width, LOGITS)

    def forward(self, tokens):
        x = F.dropout(self.embedding(tokens), self.dropout if self.training else 0.0)
        return self.output_head(self.final_norm(self.layers(x)))


def mamba2(width, layers, factor=4, **mixer):
    return Mamba(width, layers, lambda width: Mamba2Mixer(width, **mixer), factor)


def mamba3(width, layers, rank=None, factor=4, **mixer):
    return Mamba(width, layers, lambda width: Mamba3Mixer(width, rank, **mixer), factor)
