# SPDX-License-Identifier: Apache-2.0
"""The networks of the interleaving thesis' Table 4.2, by the shapes in roundabout/spec/training/training_models.yaml.

Networks are plain PyTorch, and nothing is downloaded: parameters and examples are random. A network is a list of parts,
`(class, arguments)`, so that a worker of a divided network builds only its own part. Images of 32 x 32 and texts of 128
tokens are guesses: the thesis prints neither, and its largest batches of images of 224 x 224 exceed its GPUs' memory.
The effect is that computing takes less time, while parameters, and so gradients, are the same. The parts of a pipeline
send each other less, in proportion to the texts' length.
"""

import torch
from torch import nn
from training_sizes import CLASSES, FEATURES, NARROW, blocks, divided_width, gradient_numbers, width
from training_tensors import Column, Row, Whole

IMAGE, TOKENS = 32, 128
LABELS = 1000  # ImageNet's
WHOLE = Whole()


class Residual(nn.Module):
    """A part added to its input, through a projection if the shapes differ."""

    def __init__(self, inner, beside=None, after=None):
        super().__init__()
        self.inner, self.beside, self.after = inner, beside or nn.Identity(), after or nn.Identity()

    def forward(self, given):
        """Return the sum of the part's output and of the (projected) input."""
        return self.after(self.beside(given) + self.inner(given))


def _convolution(inputs, outputs, size, stride=1):
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


class Bottleneck(Residual):
    """A residual part of three convolutions, with a convolution or an identity as the other path."""

    def __init__(self, inputs, inner, outputs, stride):
        three = nn.Sequential(
            _convolution(inputs, inner, 1), nn.ReLU(),
            _convolution(inner, inner, 3, stride), nn.ReLU(),
            _convolution(inner, outputs, 1),
        )  # fmt: skip
        fits = stride == 1 and inputs == outputs
        super().__init__(three, None if fits else _convolution(inputs, outputs, 1, stride), nn.ReLU())


def vgg(convolutions):
    """Return VGG with these numbers of convolutions in its five stages. Source: Simonyan and Zisserman, table 1."""
    parts, channels = [], 3
    for count, outputs in zip(convolutions, (64, 128, 256, 512, 512)):
        for _ in range(count):
            parts += [(nn.Conv2d, channels, outputs, 3, 1, 1), (nn.ReLU,)]
            channels = outputs
        parts.append((nn.MaxPool2d, 2))
    parts += [(nn.AdaptiveAvgPool2d, 7), (nn.Flatten,)]
    parts += [
        (nn.Linear, 512 * 49, 4096),
        (nn.ReLU,),
        (nn.Dropout,),
        (nn.Linear, 4096, 4096),
        (nn.ReLU,),
        (nn.Dropout,),
    ]
    return [*parts, (nn.Linear, 4096, LABELS)]


def resnet(bottlenecks, width):
    """Return ResNet with these numbers of bottlenecks in its four stages, of `width` in the first.

    Source: He et al., table 1.
    """
    parts, channels = [(nn.Conv2d, 3, 64, 7, 2, 3, 1, 1, False), (nn.BatchNorm2d, 64), (nn.ReLU,)], 64
    parts.append((nn.MaxPool2d, 3, 2, 1))
    for stage, count in enumerate(bottlenecks):
        for place in range(count):
            stride = 2 if stage and not place else 1
            parts.append((Bottleneck, channels, width << stage, 256 << stage, stride))
            channels = 256 << stage
    return [*parts, (nn.AdaptiveAvgPool2d, 1), (nn.Flatten,), (nn.Linear, channels, LABELS)]


class Attention(nn.Module):
    """Attention heads over all tokens, or with `causal` over earlier ones; workers divide the heads."""

    def __init__(self, hidden, heads, causal, tensors):
        super().__init__()
        self.projection, self.given = Column(hidden, 3 * hidden, tensors), Row(hidden, hidden, tensors)
        self._heads, self._causal = heads // tensors.count, causal

    def forward(self, tokens):
        """Return the attention's output for (batch, tokens, hidden), in the same shape."""
        batch, count, _ = tokens.shape
        shape = batch, count, self._heads, -1
        query, key, value = (each.reshape(shape).transpose(1, 2) for each in self.projection(tokens).chunk(3, -1))
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        if self._causal:
            later = torch.ones(count, count, dtype=torch.bool, device=tokens.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        return self.given((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, count, -1))


def _perceptron(hidden, inner, tensors):
    return nn.Sequential(Column(hidden, inner, tensors), nn.GELU(), Row(inner, hidden, tensors))


class Layer(nn.Sequential):
    """A transformer's layer, with norms before its two halves (GPT-2) or after them (BERT, GPT-1)."""

    def __init__(self, hidden, heads, causal, norm_first, tensors=WHOLE):
        halves = Attention(hidden, heads, causal, tensors), _perceptron(hidden, 4 * hidden, tensors)
        super().__init__(*(self._half(half, nn.LayerNorm(hidden), norm_first) for half in halves))

    @staticmethod
    def _half(half, norm, norm_first):
        return Residual(nn.Sequential(norm, half)) if norm_first else Residual(half, after=norm)


class Embedding(nn.Module):
    """An embedding of tokens and positions, optionally of kinds of text, and optionally with a norm."""

    def __init__(self, words, places, hidden, kinds=0, norm=False):
        super().__init__()
        self.words, self.places = nn.Embedding(words, hidden), nn.Embedding(places, hidden)
        self.kinds = nn.Embedding(kinds, hidden) if kinds else None
        self.norm = nn.LayerNorm(hidden) if norm else nn.Identity()
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens):
        """Return the embeddings of word numbers (batch, tokens)."""
        found = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        return self.norm(found if self.kinds is None else found + self.kinds.weight[0])


def scores(embedding, hidden):
    """Return the score of each word as the product of its embedding with the hidden state."""
    return hidden @ embedding.words.weight.t()


class Words(nn.Module):
    """The head of a masked language model, which shares the embedding's table of words."""

    def __init__(self, words, hidden):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, embedding, hidden):
        """Return the scores of each word."""
        return scores(embedding, self.inner(hidden)) + self.bias


class Language(nn.Module):
    """A whole language model, whose first and last part share their table of words."""

    def __init__(self, parts, head=None):
        super().__init__()
        self.parts, self.head = built(parts), head

    def forward(self, tokens):
        """Return the scores of each word for each token: (batch, tokens) to (batch, tokens, words)."""
        return (self.head or scores)(self.parts[0], self.parts(tokens))


def bert(words, places, kinds, hidden, layers, heads):
    """Return BERT with its masked language model's head.

    Source: Devlin et al.; other models by their published sizes.
    """
    parts = [(Embedding, words, places, hidden, kinds, True), *[(Layer, hidden, heads, False, False)] * layers]
    return Language(parts, Words(words, hidden))


def gpt(words, places, hidden, layers, heads, norm_first, tensors=WHOLE):
    """Return GPT's parts without the last one, which scores words by the first part's table.

    Source: Radford et al.
    """
    each = (Layer, hidden, heads, True, norm_first, tensors)
    last = [(nn.LayerNorm, hidden)] if norm_first else []
    return [(Embedding, words, places, hidden), *[each] * layers, *last]


def perceptron(hidden):
    """Return a network of two hidden layers of width `hidden`."""
    return [
        (nn.Linear, FEATURES, hidden),
        (nn.ReLU,),
        (nn.Linear, hidden, hidden),
        (nn.ReLU,),
        (nn.Linear, hidden, CLASSES),
    ]


class Block(Residual):
    """A residual block of a wide layer made of narrow ones, which workers can divide."""

    def __init__(self, hidden, tensors):
        super().__init__(nn.Sequential(Column(hidden, NARROW, tensors), nn.ReLU(), Row(NARROW, hidden, tensors)))


def divided(job, batch, parts, tensors, copies):
    """Return the parts of a network whose workers send the profile's bytes; `tensors` divides its blocks."""
    hidden = divided_width(job, batch, parts, tensors.count, copies)
    middle = [(Block, hidden, tensors)] * blocks(parts)
    return [(nn.Linear, FEATURES, hidden), *middle, (nn.Linear, hidden, CLASSES)]


def built(parts):
    """Return one network built from all parts."""
    return nn.Sequential(*(kind(*given) for kind, *given in parts))


def network(shape, job):
    """Return the network of a shape, or without a shape one whose gradients have the profile's bytes."""
    if shape is None:
        return built(perceptron(width(gradient_numbers(job))))
    kind, given = shape["kind"], {name: value for name, value in shape.items() if name != "kind"}
    if kind == "gpt":
        return Language(gpt(**given))
    return bert(**given) if kind == "bert" else built({"vgg": vgg, "resnet": resnet}[kind](**given))


class Examples:
    """A generator of random examples, on the CPU, from which a network of the shape can learn.

    Images have `image` pixels a side, texts `tokens` tokens.
    """

    def __init__(self, shape, batch, seed, rank, device="cpu", image=IMAGE, tokens=TOKENS):
        self._kind, self._batch, self._device = shape and shape["kind"], batch, device
        self._image, self._tokens = image, tokens
        self._teacher = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(seed))
        self._random = torch.Generator().manual_seed(seed + 1 + rank)
        self._words = (shape or {}).get("words")

    def draw(self):
        """Return a batch: (examples, labels)."""
        given, said = self._texts() if self._words else self._images() if self._kind else self._numbers()
        return given.to(self._device), said.to(self._device)

    def _numbers(self):
        numbers = torch.randn(self._batch, FEATURES, generator=self._random)
        return numbers, (numbers @ self._teacher).argmax(1)

    def _images(self):
        images = torch.randn(self._batch, 3, self._image, self._image, generator=self._random)
        return images, images.flatten(1)[:, :LABELS].argmax(1)

    def _texts(self):
        """Return texts in which each word is followed by the next one of the vocabulary."""
        begins = torch.randint(self._words, (self._batch, 1), generator=self._random)
        words = (begins + torch.arange(self._tokens + 1)) % self._words
        return words[:, :-1], words[:, 1:]


def loss_of(found, said):
    """Return the cross-entropy loss of classes, or of each token's word."""
    return nn.functional.cross_entropy(found.flatten(0, -2), said.flatten())
