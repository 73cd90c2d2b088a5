"""A function under `jax.checkpoint`, with JAX's own policies.

Source: `jax.checkpoint`, `jax.checkpoint_policies`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.checkpoint.policies import Policy, described
from ckptcli.checkpoint.policies.base import NoCounterpart
from ckptcli.peers.base import NoPeer


def checkpointed(function: Any, policy: Policy | None) -> Any:
    """The function, recomputed in backward but for what the policy saves; None for as it is.

    Raises:
        NoPeer: a policy that JAX has no counterpart for.
    """
    import jax

    if policy is None:
        return function
    try:
        counterpart = described(policy).in_jax(jax.checkpoint_policies)
    except NoCounterpart as error:
        raise NoPeer(str(error)) from error
    return jax.checkpoint(function, policy=counterpart)
