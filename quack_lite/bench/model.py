"""A small language model after Llama, written once over four operators that are handed in.

Parameters, residual stream, norms and loss are float32, the matrix products and what lies between them bfloat16. That
is what torch.autocast makes of such a model. Here it is written out: autocast would convert the inputs of torch's
operators and not those of ours, and the two would not do the same work.
Source: Touvron et al., "LLaMA", 2023, section 2.2 (norm before each part, SwiGLU, rotary embedding).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import embedding, linear, scaled_dot_product_attention

BYTES = 256  # the vocabulary
ROTARY_BASE = 10000.0
DEVIATION = 0.02  # of the first weights


class Operators(NamedTuple):
    """What the model asks for; w: weights (n) of a norm.

    rms_norm(x, w) -> y.  add_rms_norm(x, residual, w) -> y of x's dtype, new residual of residual's dtype.
    swiglu(gate, up) -> y.  cross_entropy(logits (m, classes), targets (m)) -> mean loss.
    """

    rms_norm: Callable
    add_rms_norm: Callable
    swiglu: Callable
    cross_entropy: Callable


class Size(NamedTuple):
    """width: of the residual stream.  hidden: of the MLP.  length: bytes of one sequence."""

    width: int = 384
    layers: int = 4
    heads: int = 6
    hidden: int = 1024
    length: int = 512


class Block(nn.Module):
    """The weights of attention and MLP. `following`: of the norm after the MLP, the next block's or the last."""

    def __init__(self, size: Size):
        super().__init__()
        into_residual = DEVIATION / (2 * size.layers) ** 0.5
        self.qkv = weights(3 * size.width, size.width)
        self.out = weights(size.width, size.width, deviation=into_residual)
        self.middle = nn.Parameter(torch.ones(size.width))
        self.gate = weights(size.hidden, size.width)
        self.up = weights(size.hidden, size.width)
        self.down = weights(size.width, size.hidden, deviation=into_residual)
        self.following = nn.Parameter(torch.ones(size.width))


class Model(nn.Module):
    """Weights by torch's current random state. dtype: of the matrix products."""

    def __init__(self, size: Size, operators: Operators, dtype: torch.dtype):
        super().__init__()
        self.heads, self.operators, self.dtype = size.heads, operators, dtype
        self.embedding = weights(BYTES, size.width)
        self.first = nn.Parameter(torch.ones(size.width))
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.head = weights(BYTES, size.width)
        for name, table in rotary_tables(size).items():
            self.register_buffer(name, table.to(dtype))

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The mean loss of predicting targets from tokens, both (batch, length) int64."""
        residual = embedding(tokens, self.embedding)  # (batch, length, width) float32
        x = self.operators.rms_norm(residual, self.first).to(self.dtype)
        for block in self.blocks:
            x = self.attention(x, block)
            x, residual = self.operators.add_rms_norm(x, residual, block.middle)
            x = self.mlp(x, block)
            x, residual = self.operators.add_rms_norm(x, residual, block.following)
        logits = multiply(x, self.head).float()
        return self.operators.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def attention(self, x: torch.Tensor, block: Block) -> torch.Tensor:
        """Each byte looks at itself and those before it. x and result: (batch, length, width)."""
        heads = multiply(x, block.qkv).unflatten(-1, (3, self.heads, -1))  # (batch, length, 3, heads, depth)
        query_key, value = heads.permute(2, 0, 3, 1, 4).split((2, 1))  # (2 or 1, batch, heads, length, depth)
        query, key = rotate(query_key, self.cosines, self.sines)
        seen = scaled_dot_product_attention(query, key, value[0], is_causal=True)
        return multiply(seen.transpose(1, 2).flatten(2), block.out)

    def mlp(self, x: torch.Tensor, block: Block) -> torch.Tensor:
        """x and result: (batch, length, width)."""
        return multiply(self.operators.swiglu(multiply(x, block.gate), multiply(x, block.up)), block.down)


def weights(*shape: int, deviation: float = DEVIATION) -> nn.Parameter:
    """Normally distributed, float32."""
    return nn.Parameter(torch.randn(shape) * deviation)


def multiply(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x (..., k) times the transpose of weight (n, k), in the dtype of x."""
    return linear(x, weight.to(x.dtype))


def rotary_tables(size: Size) -> dict[str, torch.Tensor]:
    """Cosines and sines (length, depth / 2) of position times frequency.

    Source: Su et al., "RoFormer", 2021, section 3.2.2.
    """
    half = size.width // size.heads // 2
    frequencies = ROTARY_BASE ** (-torch.arange(half) / half)
    angles = torch.outer(torch.arange(size.length).float(), frequencies)
    return {"cosines": angles.cos(), "sines": angles.sin()}


def rotate(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Turns the pairs (first half, second half) of x (..., length, depth) by their angles."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), -1)
