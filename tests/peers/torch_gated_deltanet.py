"""Gated DeltaNet in plain PyTorch, written from its description (docs/models.md), with the reference's parameter names:
projections and short convolutions over all steps at once, the delta rule step by step.
"""

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LOGITS = 20482, 1878


class RmsNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


def unit(x):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


class Mixer(nn.Module):
    def __init__(self, width, heads, key, value, taps, scale, eps):
        super().__init__()
        self.heads, self.scale = heads, scale
        linear = lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False)
        conv = lambda channels: nn.Conv1d(channels, channels, taps, groups=channels, bias=False)
        self.A_log = nn.Parameter((16 * torch.rand(heads)).log())
        self.dt_bias = nn.Parameter(torch.full((heads,), -5.0))
        self.q_proj, self.k_proj = linear(width, heads * key), linear(width, heads * key)
        self.v_proj, self.g_proj = linear(width, heads * value), linear(width, heads * value)
        self.a_proj, self.b_proj = linear(width, heads), linear(width, heads)
        self.q_conv1d, self.k_conv1d = conv(heads * key), conv(heads * key)
        self.v_conv1d = conv(heads * value)
        self.o_norm, self.o_proj = RmsNorm(value, eps), linear(heads * value, width)

    def convolved(self, x, conv):
        """Every head's channels after the short convolution and SiLU, `[games heads, steps, channels]`."""
        x = F.silu(conv(F.pad(x.transpose(1, 2), (conv.kernel_size[0] - 1, 0))))
        return x.reshape(x.shape[0] * self.heads, -1, x.shape[2]).transpose(1, 2)

    def scalar(self, x):
        return x.transpose(1, 2).reshape(-1, x.shape[1], 1)

    def forward(self, x):
        games, steps, _ = x.shape
        q = unit(self.convolved(self.q_proj(x), self.q_conv1d))
        k = unit(self.convolved(self.k_proj(x), self.k_conv1d))
        v = self.convolved(self.v_proj(x), self.v_conv1d)
        q = q * q.shape[-1] ** -0.5
        decay = torch.exp(-self.A_log.exp() * F.softplus(self.a_proj(x) + self.dt_bias))
        decay = self.scalar(decay).unsqueeze(-1)
        beta = self.scalar(self.scale * torch.sigmoid(self.b_proj(x)))
        state = x.new_zeros(q.shape[0], q.shape[2], v.shape[2])
        outputs = []
        # Views once, not once a step.
        for q, k, v, decay, beta in zip(*(part.unbind(1) for part in (q, k, v, decay, beta))):
            state = state * decay
            error = beta * (v - torch.bmm(k.unsqueeze(1), state).squeeze(1))
            state = torch.baddbmm(state, k.unsqueeze(2), error.unsqueeze(1))
            outputs.append(torch.bmm(q.unsqueeze(1), state))
        o = self.o_norm(torch.cat(outputs, 1)).view(games, self.heads, steps, -1).transpose(1, 2)
        return self.o_proj(o.reshape(games, steps, -1) * F.silu(self.g_proj(x)))


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, width, hidden, eps, *mixer):
        super().__init__()
        self.attn_norm, self.mlp_norm = RmsNorm(width, eps), RmsNorm(width, eps)
        self.attn, self.mlp = Mixer(width, *mixer, eps), Mlp(width, hidden)

    def forward(self, x):
        x = x + self.attn(self.attn_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Backbone(nn.Module):
    def __init__(self, vocab, width, layers, eps, *rest):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, width)
        self.layers = nn.Sequential(*(Layer(width, *rest) for _ in range(layers)))
        self.norm = RmsNorm(width, eps)

    def forward(self, tokens):
        return self.norm(self.layers(self.embeddings(tokens)))


class GatedDeltaNet(nn.Module):
    def __init__(
        self, width, layers, heads, factor=4, key=48, expand=2.0, taps=4, scale=2.0, eps=1e-6, vocab=VOCAB
    ):
        super().__init__()
        hidden = -(-(2 * factor * width // 3) // 256) * 256
        mixer = heads, key, int(key * expand), taps, scale
        self.backbone = Backbone(vocab, width, layers, eps, hidden, eps, *mixer)
        self.output_head = nn.Linear(width, LOGITS)

    def forward(self, tokens):
        return self.output_head(self.backbone(tokens))
