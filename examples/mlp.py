"""A multilayer perceptron: `ckpt run --workload examples/mlp.py:make`."""

LAYERS = 6
WIDTH = 256
BATCH = 1024


def make(device):
    """The mean square error of the network on a batch; weights and data are drawn."""
    weights = [device.normal((WIDTH, WIDTH), std=WIDTH**-0.5).require_grad() for _ in range(LAYERS)]
    biases = [device.tensor([0.0] * WIDTH).require_grad() for _ in range(LAYERS)]
    x = device.uniform((BATCH, WIDTH), -1.0, 1.0)
    target = device.uniform((BATCH, WIDTH))

    def loss():
        h = x
        for layer in device.layers(LAYERS):
            h = (h @ weights[layer] + biases[layer]).gelu()
        return (h - target).square().mean()

    return loss
