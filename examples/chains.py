"""Chains of ops that `balanced` recomputes whole: `ckpt log --workload examples/chains.py:sines20`.

`sines` is y = sin(y), `squares` y = y * y; the number is how often. Burn's sort before its pull
request 5679 searched lists on them (`--sort before-5679`), and sorted each square's operand twice.
"""


def chain(rounds, turn):
    """A program of so many turns."""

    def make(device):
        x = device.tensor([0.5]).require_grad()

        def loss():
            y = x
            for _ in range(rounds):
                y = turn(y)
            return y.sum()

        return loss

    return make


sines10, sines20, sines40 = (chain(rounds, lambda y: y.sin()) for rounds in (10, 20, 40))
squares4, squares8, squares16 = (chain(rounds, lambda y: y * y) for rounds in (4, 8, 16))
