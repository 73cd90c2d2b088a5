"""A deep transformer: `ckpt plan --workload examples/pyramid.py:Model --budget 4MiB --run`.

Three blocks of eight layers; between two blocks neighbouring tokens are averaged, so that layers
of one block are half as large as those before.
"""

BLOCKS = 3
LAYERS = 8
BATCH = 2
TOKENS = 64
WIDTH = 32
HEADS = 2


class Layer:
    """Attention and two products behind it, each added to what came in."""

    def __init__(self, device):
        def weight(rows, columns):
            return device.normal((rows, columns), std=rows**-0.5).require_grad()

        self.first_norm, self.second_norm = (
            device.tensor([1.0] * WIDTH).require_grad() for _ in range(2)
        )
        self.query, self.key, self.value, self.output = (weight(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = weight(WIDTH, 2 * WIDTH), weight(2 * WIDTH, WIDTH)

    def __call__(self, x):
        h = x.rms_norm(self.first_norm)
        q, k, v = (heads(h @ w) for w in (self.query, self.key, self.value))
        x = x + q.attention(k, v).swap_dims(1, 2).reshape(x.shape) @ self.output
        h = x.rms_norm(self.second_norm)
        return x + (h @ self.up).gelu() @ self.down


class Model:
    """The loss is a call of the object; its attributes name the parameters."""

    def __init__(self, device):
        self.device = device
        self.layers = [Layer(device) for _ in range(BLOCKS * LAYERS)]
        self.tokens = device.normal((BATCH, TOKENS, WIDTH))

    def __call__(self):
        x = self.tokens
        for block in range(BLOCKS):
            for layer in self.device.layers(LAYERS):
                x = self.layers[block * LAYERS + layer](x)
            if block < BLOCKS - 1:
                x = halved(x)
        return x.square().mean()


def heads(x):
    """[batch, tokens, width] as [batch, heads, tokens, width of a head]."""
    batch, tokens, _ = x.shape
    return x.reshape([batch, tokens, HEADS, WIDTH // HEADS]).swap_dims(1, 2)


def halved(x):
    """The mean of each two neighbouring tokens."""
    batch, tokens, width = x.shape
    return x.reshape([batch, tokens // 2, 2, width]).mean_dim(2).reshape([batch, -1, width])
