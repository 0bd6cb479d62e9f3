"""A small language model in bfloat16 whose activation, norm of a head and loss can be swapped, for lesson 14.

Each block normalises its input, and each head its queries and keys. Source of the latter: Henry et al., "Query-Key
Normalization for Transformers", 2020; of the loss's second term: Chowdhery et al., "PaLM", 2022, section 5.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

EPS = 1e-6
Z = 1e-4


class SmallSize(NamedTuple):
    """tokens: of the vocabulary.  width: of the residual stream.  hidden: of the MLP."""

    tokens: int = 8192
    width: int = 512
    layers: int = 4
    heads: int = 8
    hidden: int = 2048


def activation(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """SwiGLU of two tensors of one shape."""
    return functional.silu(gate) * up


def norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x (..., heads, d) bfloat16, w (d) float32 -> x / sqrt(mean of squares) * (1 + w)."""
    wide = x.float()
    rstd = torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPS)
    return (wide * rstd * (1 + w)).to(x.dtype)


def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """logits (..., tokens), targets (...) -> the mean of lse - logits[target] + Z * lse**2, lse = log(sum(exp))."""
    wide = logits.float()
    lse = wide.logsumexp(-1)
    return (lse - wide.gather(-1, targets[..., None])[..., 0] + Z * lse.square()).mean()


class SmallBlock(nn.Module):
    """The weights of attention and MLP."""

    def __init__(self, size: SmallSize):
        super().__init__()
        self.qkv = linear(size.width, 3 * size.width)
        self.out = linear(size.width, size.width)
        self.gate = linear(size.width, size.hidden)
        self.up = linear(size.width, size.hidden)
        self.down = linear(size.hidden, size.width)
        self.query_scale = nn.Parameter(torch.zeros(size.width // size.heads))
        self.key_scale = nn.Parameter(torch.zeros(size.width // size.heads))


class SmallModel(nn.Module):
    """Weights by torch's current random state. What can be swapped: the attributes activation, norm and loss."""

    def __init__(self, size: SmallSize | None = None):
        super().__init__()
        size = size or SmallSize()
        self.heads = size.heads
        self.activation, self.norm, self.loss = activation, norm, loss
        self.embedding = nn.Embedding(size.tokens, size.width, dtype=torch.bfloat16)
        self.blocks = nn.ModuleList(SmallBlock(size) for _ in range(size.layers))
        self.head = linear(size.width, size.tokens)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The loss of predicting targets from tokens, both (batch, length) int64."""
        x = self.embedding(tokens)  # (batch, length, width)
        for block in self.blocks:
            x = x + self.attention(plain_norm(x), block)
            x = x + self.mlp(plain_norm(x), block)
        return self.loss(self.head(plain_norm(x)), targets)

    def attention(self, x: torch.Tensor, block: SmallBlock) -> torch.Tensor:
        """Each token looks at itself and those before it. x and result: (batch, length, width)."""
        heads = block.qkv(x).unflatten(-1, (3, self.heads, -1))  # (batch, length, 3, heads, d)
        query, key, value = heads.unbind(2)  # (batch, length, heads, d), views
        query, key = self.norm(query, block.query_scale), self.norm(key, block.key_scale)
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))  # (batch, heads, length, d)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return block.out(seen.transpose(1, 2).flatten(2))

    def mlp(self, x: torch.Tensor, block: SmallBlock) -> torch.Tensor:
        """x and result: (batch, length, width)."""
        return block.down(self.activation(block.gate(x), block.up(x)))


def plain_norm(x: torch.Tensor) -> torch.Tensor:
    """Without a weight."""
    return functional.rms_norm(x, x.shape[-1:], eps=EPS)


def linear(columns: int, rows: int) -> nn.Linear:
    """A product without a bias."""
    return nn.Linear(columns, rows, bias=False, dtype=torch.bfloat16)
