"""Blocks of a transformer, as objects: `ckpt run --workload examples/transformer.py:Model`."""

BLOCKS = 4
BATCH = 4
TOKENS = 64
WIDTH = 64
HEADS = 4


class Block:
    """Causal attention and two layers behind it, each added to what came in."""

    def __init__(self, device):
        def weight(rows, columns):
            return device.normal((rows, columns), std=rows**-0.5).require_grad()

        def ones():
            return device.tensor([1.0] * WIDTH).require_grad()

        self.first_norm, self.second_norm = ones(), ones()
        self.query, self.key = weight(WIDTH, WIDTH), weight(WIDTH, WIDTH)
        self.value, self.output = weight(WIDTH, WIDTH), weight(WIDTH, WIDTH)
        self.up, self.down = weight(WIDTH, 4 * WIDTH), weight(4 * WIDTH, WIDTH)

    def __call__(self, x):
        h = x.rms_norm(self.first_norm)
        q, k, v = (heads(h @ w) for w in (self.query, self.key, self.value))
        x = x + merged(q.attention(k, v, is_causal=True)) @ self.output
        h = x.rms_norm(self.second_norm)
        return x + (h @ self.up).gelu() @ self.down


class Model:
    """The loss is a call of the object; its attributes name the parameters."""

    def __init__(self, device):
        self.device = device
        self.blocks = [Block(device) for _ in range(BLOCKS)]
        self.tokens = device.normal((BATCH, TOKENS, WIDTH))
        self.target = device.normal((BATCH, TOKENS, WIDTH))

    def __call__(self):
        x = self.tokens
        for layer in self.device.layers(BLOCKS):
            x = self.blocks[layer](x)
        return x.mse(self.target)


def heads(x):
    """[batch, tokens, width] as [batch, heads, tokens, width of a head]."""
    return x.reshape([BATCH, TOKENS, HEADS, WIDTH // HEADS]).swap_dims(1, 2)


def merged(x):
    """The heads side by side again."""
    return x.swap_dims(1, 2).reshape([BATCH, TOKENS, WIDTH])
