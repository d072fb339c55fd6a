# SPDX-License-Identifier: Apache-2.0
"""One layer of today's language models, by the shapes in roundabout/spec/training/layer_models.yaml.

Layers are plain PyTorch without communication: a worker's share of a divided layer computes as it does beside its
peers, and the all-reduces and all-to-alls of tensor and expert parallelism are left out. Parameters are random.
"""

import torch
from torch import nn
from torch.nn import functional

ROTARY_BASE = 500_000.0  # Llama 3's; it changes values of the rotation, not its time


class MeanSquareNorm(nn.Module):
    """A norm by the root mean square, for PyTorch before 2.4, which has none."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, given):
        """Return the input divided by its root mean square, times the weights."""
        return given * (given.float().square().mean(-1, keepdim=True) + 1e-5).rsqrt().to(given.dtype) * self.weight


Norm = getattr(nn, "RMSNorm", MeanSquareNorm)


def attend(query, key, value):
    """Return causal attention of (batch, heads, tokens, width), by PyTorch's fused kernel where it has one (2.0)."""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    later = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device).triu(1)
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return scores.masked_fill(later, float("-inf")).softmax(-1) @ value


class Rotary(nn.Module):
    """Rotary position embedding of `width` numbers a head. Source: Su et al., RoFormer."""

    def __init__(self, tokens, width):
        super().__init__()
        rates = ROTARY_BASE ** -(torch.arange(0, width, 2) / width)
        angles = torch.arange(tokens)[:, None] * rates
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, given):
        """Return the heads (batch, heads, tokens, width), each turned by its position."""
        first, second = given.chunk(2, -1)
        cosines, sines = self.cosines.to(given.dtype), self.sines.to(given.dtype)
        return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1)


class GroupedAttention(nn.Module):
    """Causal attention whose query heads share fewer key and value heads (Llama 3, Mixtral)."""

    def __init__(self, tokens, hidden, heads, kv_heads, head):
        super().__init__()
        self._widths = [heads * head, kv_heads * head, kv_heads * head]
        self._head, self._repeats = head, heads // kv_heads
        self.projection = nn.Linear(hidden, sum(self._widths), bias=False)
        self.given = nn.Linear(heads * head, hidden, bias=False)
        self.rotary = Rotary(tokens, head)

    def forward(self, tokens):
        """Return the attention's output for (batch, tokens, hidden), in the same shape."""
        batch, count, _ = tokens.shape
        parts = self.projection(tokens).split(self._widths, -1)
        query, key, value = (each.reshape(batch, count, -1, self._head).transpose(1, 2) for each in parts)
        key, value = (each.repeat_interleave(self._repeats, 1) for each in (self.rotary(key), value))
        found = attend(self.rotary(query), key, value)
        return self.given(found.transpose(1, 2).reshape(batch, count, -1))


class LatentAttention(nn.Module):
    """Causal attention through low-rank queries, keys and values. Source: DeepSeek-V3, section 2.1.1.

    Values are padded to the keys' width, which fused kernels demand, as public implementations pad them.
    """

    def __init__(self, tokens, hidden, heads, head, latent):
        super().__init__()
        self._heads, self._head, self._turned = heads, head, latent["turned"]
        query, key_value = latent["query"], latent["key_value"]
        self._widths = [key_value, self._turned]
        self.query_down = nn.Linear(hidden, query, bias=False)
        self.query_norm = Norm(query)
        self.query_up = nn.Linear(query, heads * (head + self._turned), bias=False)
        self.down = nn.Linear(hidden, sum(self._widths), bias=False)
        self.norm = Norm(key_value)
        self.up = nn.Linear(key_value, heads * 2 * head, bias=False)
        self.given = nn.Linear(heads * head, hidden, bias=False)
        self.rotary = Rotary(tokens, self._turned)

    def forward(self, tokens):
        """Return the attention's output for (batch, tokens, hidden), in the same shape."""
        batch, count, _ = tokens.shape
        shape = batch, count, self._heads, -1
        query = self.query_up(self.query_norm(self.query_down(tokens))).reshape(shape).transpose(1, 2)
        plain, turned = query.split([self._head, self._turned], -1)
        query = torch.cat([plain, self.rotary(turned)], -1)
        low, turned = self.down(tokens).split(self._widths, -1)
        plain, value = self.up(self.norm(low)).reshape(shape).transpose(1, 2).chunk(2, -1)
        turned = self.rotary(turned[:, None]).expand(-1, self._heads, -1, -1)
        key = torch.cat([plain, turned.to(plain.dtype)], -1)
        found = attend(query.to(key.dtype), key, functional.pad(value, (0, self._turned)))[..., : self._head]
        return self.given(found.transpose(1, 2).reshape(batch, count, -1))


class GatedPerceptron(nn.Module):
    """A perceptron whose inner layer has a gate (SwiGLU)."""

    def __init__(self, hidden, inner):
        super().__init__()
        self.inner, self.outer = nn.Linear(hidden, 2 * inner, bias=False), nn.Linear(inner, hidden, bias=False)

    def forward(self, given):
        """Return the perceptron's output, in the input's shape."""
        gate, value = self.inner(given).chunk(2, -1)
        return self.outer(functional.silu(gate) * value)


class Experts(nn.Module):
    """A layer of experts, of which each token takes `chosen` and this worker has `own`.

    Tokens are spread evenly over experts, by a fixed random order: a guess, which balanced routing aims at. A worker
    therefore computes as many tokens as its own tokens need: its peers' tokens come as its own tokens leave.
    """

    def __init__(self, tokens, hidden, inner, experts, chosen, own, common):
        super().__init__()
        self._chosen = chosen
        self.router = nn.Linear(hidden, experts, bias=False)
        self.own = nn.ModuleList(GatedPerceptron(hidden, inner) for _ in range(own))
        self.common = GatedPerceptron(hidden, common * inner) if common else None
        random = torch.Generator("cpu").manual_seed(1)
        self.register_buffer("slots", torch.randperm(tokens * chosen, generator=random, device="cpu"))

    def forward(self, tokens):
        """Return the experts' weighted sum for (1, tokens, hidden), in the same shape."""
        flat = tokens.reshape(-1, tokens.shape[-1])
        weights, _ = self.router(flat).softmax(-1).topk(self._chosen)
        weights = (weights / weights.sum(-1, keepdim=True)).reshape(-1, 1).index_select(0, self.slots)
        places = self.slots // self._chosen
        parts = flat.index_select(0, places).chunk(len(self.own))
        found = torch.cat([expert(part) for expert, part in zip(self.own, parts)]) * weights
        summed = torch.zeros_like(flat, dtype=found.dtype).index_add(0, places, found).reshape(tokens.shape)
        return summed if self.common is None else summed + self.common(tokens)


class DecoderLayer(nn.Module):
    """A layer of a decoder: attention, then a perceptron or experts, each added to its input and after a norm."""

    def __init__(self, tokens, attention, perceptron, hidden):
        super().__init__()
        self.before, self.attention = Norm(hidden), attention
        self.between, self.perceptron = Norm(hidden), perceptron

    def forward(self, tokens):
        """Return the layer's output for (1, tokens, hidden), in the same shape."""
        tokens = tokens + self.attention(self.before(tokens))
        return tokens + self.perceptron(self.between(tokens))


def layer(shape, share, tokens):
    """Return the network of a worker's share of a layer, for one text of `tokens` tokens.

    Raises ValueError if the share does not divide the shape.
    """
    tensors, divided = share.get("tensors", 1), share.get("experts", 1)
    hidden, experts = shape["hidden"], shape.get("experts", 0)
    heads, kv_heads = shape["heads"], shape.get("kv_heads", shape["heads"])
    if heads % tensors or kv_heads % tensors or shape["inner"] % tensors or experts % divided:
        raise ValueError(f"found the share {share} of {shape}, expected one that divides heads, width and experts")
    if "latent" in shape:
        attention = LatentAttention(tokens, hidden, heads // tensors, shape["head"], shape["latent"])
    else:
        attention = GroupedAttention(tokens, hidden, heads // tensors, kv_heads // tensors, shape["head"])
    inner = shape["inner"] // tensors
    if experts:
        given = experts, shape["chosen"], experts // divided, shape.get("common", 0)
        return DecoderLayer(tokens, attention, Experts(tokens, hidden, inner, *given), hidden)
    return DecoderLayer(tokens, attention, GatedPerceptron(hidden, inner), hidden)
