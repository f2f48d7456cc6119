"""The benchmark's models in plain PyTorch, written from their description (docs/models.md): straightforward forms that
run on the CPU.

A family joins in with a case of `of_config`, for torch_names.py, and presets in MODELS, for torch_speed.py.
"""

import torch
import torch.nn.functional as F
from torch import nn

from torch_gated_deltanet import GatedDeltaNet
from torch_mamba import mamba2, mamba3

VOCAB, LOGITS = 20482, 1878


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


class SwiGlu(nn.Module):
    def __init__(self, width, factor):
        super().__init__()
        self.in_proj = nn.Linear(width, 2 * factor * width)
        self.out_proj = nn.Linear(factor * width, width)

    def forward(self, x):
        gate, value = self.in_proj(x).chunk(2, -1)
        return self.out_proj(F.silu(gate) * value)


class TransformerBlock(nn.Module):
    def __init__(self, width, heads, factor, dropout):
        super().__init__()
        self.dropout = dropout
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attn, self.mlp = Attention(width, heads), SwiGlu(width, factor)

    def forward(self, x, cos, sin):
        p = self.dropout if self.training else 0.0
        x = x + F.dropout(self.attn(self.norm1(x), cos, sin, p), p)
        return x + F.dropout(self.mlp(self.norm2(x)), p)


class Transformer(nn.Module):
    """Its parameters have the names that the benchmark's reference gives them."""

    def __init__(self, width=128, layers=1, heads=2, factor=4, dropout=0.1):
        super().__init__()
        self.tok_emb = nn.Embedding(VOCAB, width)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads, factor, dropout) for _ in range(layers))
        self.final_norm, self.output_head = RmsNorm(width), nn.Linear(width, LOGITS)
        self.frequencies = 1e4 ** (-torch.arange(0, width // heads, 2) / (width // heads))

    def forward(self, tokens):
        angles = torch.arange(tokens.shape[1])[:, None] * self.frequencies
        angles = torch.cat((angles, angles), -1)
        x = self.tok_emb(tokens)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        return self.output_head(self.final_norm(x))


class SliceMixer(nn.Module):
    """All transitions in one linear map; the recurrence step by step."""

    def __init__(self, width, block, scale):
        super().__init__()
        self.block, self.scale = block, scale
        self.init = nn.Parameter(0.1 * torch.randn(width))
        self.vf_A = nn.Linear(width + 1, width * block, bias=False)
        self.vf_B = nn.Linear(width + 1, width, bias=False)
        nn.init.normal_(self.vf_A.weight, std=0.1 / block**0.5)
        nn.init.normal_(self.vf_B.weight, std=0.1)

    def forward(self, u):
        games, steps, width = u.shape
        increments = torch.diff(u, dim=1, prepend=torch.zeros_like(u[:, :1]))
        increments = self.scale * torch.cat((torch.ones_like(u[..., :1]), increments), -1)
        blocks = (games, steps, width // self.block, self.block)
        a, b = self.vf_A(increments).view(*blocks, self.block), self.vf_B(increments).view(blocks)
        if self.block == 1:
            a = a.squeeze(-1)
        y = self.init.view(blocks[2:]).expand(games, -1, -1)
        states = []
        # Views once, not once a step.
        for a, b in zip(a.unbind(1), b.unbind(1)):
            moved = a * y if self.block == 1 else (a @ y.unsqueeze(-1)).squeeze(-1)
            y = y + moved + b
            states.append(y)
        return torch.stack(states, 1).view(games, steps, width)


class SliceLayer(nn.Module):
    def __init__(self, width, block, factor, dropout, scale):
        super().__init__()
        self.dropout = dropout
        self.slice = SliceMixer(width, block, scale)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.token_mlp = nn.Sequential(
            nn.Linear(width, factor * width), nn.GELU(), nn.Linear(factor * width, width)
        )

    def forward(self, x):
        p = self.dropout if self.training else 0.0
        x = x + F.dropout(self.slice(self.norm1(x)), p)
        return x + F.dropout(self.token_mlp(self.norm2(x)), p)


class Slice(nn.Module):
    """Its parameters have the names that the benchmark's reference gives them."""

    def __init__(self, width, layers, block, factor=4, dropout=0.1, scale=0.1):
        super().__init__()
        self.dropout = dropout
        self.embedding = nn.Embedding(VOCAB, width)
        self.layers = nn.Sequential(*(SliceLayer(width, block, factor, dropout, scale) for _ in range(layers)))
        self.output_head = nn.Linear(width, LOGITS)

    def forward(self, tokens):
        p = self.dropout if self.training else 0.0
        return self.output_head(self.layers(F.dropout(self.embedding(tokens), p)))


def of_config(config):
    """The network of a checkpoint's config.json."""
    width, layers, factor = config["d_model"], config["n_layers"], config["ff_mult"]
    match config["family"]:
        case "transformer":
            return Transformer(width, layers, config["n_heads"], factor)
        case "slice":
            return Slice(width, layers, config["block_size"], factor, scale=config["scale"])
        case "mamba2" | "mamba3":
            mixer = {"n": config["d_state"], "p": config["headdim"], "expand": config["expand"]}
            if config["family"] == "mamba2":
                return mamba2(width, layers, factor, taps=config["d_conv"], **mixer)
            return mamba3(width, layers, config.get("mimo_rank"), factor, **mixer)
        case "gated_deltanet":
            sizes = config["head_dim"], config["expand_v"], config["conv_size"]
            scale = 2.0 if config["allow_neg_eigval"] else 1.0
            return GatedDeltaNet(
                width, layers, config["n_heads"], factor, *sizes, scale=scale, eps=config["norm_eps"]
            )
        case family:
            raise ValueError(f"no {family} is written down here yet")


MODELS = {
    "transformer-d128": lambda: Transformer(128, 1, 2),
    "transformer-d256": lambda: Transformer(256, 2, 4),
    "slice-d128": lambda: Slice(128, 1, 8),
    "slice-d256": lambda: Slice(256, 2, 8),
    "slice-diagonal-d128": lambda: Slice(128, 1, 1),
    "slice-diagonal-d256": lambda: Slice(256, 2, 1),
    "mamba2-d128": lambda: mamba2(128, 1),
    "mamba2-d256": lambda: mamba2(256, 2),
    "mamba3-d128": lambda: mamba3(128, 1),
    "mamba3-d256": lambda: mamba3(256, 2),
    "mamba3-mimo4-d128": lambda: mamba3(128, 1, 4),
    "mamba3-mimo4-d256": lambda: mamba3(256, 2, 4),
    "gated-deltanet-d128": lambda: GatedDeltaNet(128, 1, 2),
    "gated-deltanet-d256": lambda: GatedDeltaNet(256, 2, 4),
}
