"""A function under `jax.checkpoint`, with JAX's own policies.

Source: `jax.checkpoint`, `jax.checkpoint_policies`.
"""

from __future__ import annotations

from typing import Any

from ckptcli.checkpoint import policies
from ckptcli.checkpoint.policies import (
    Policy,
    SaveAnyNamesButThese,
    SaveFromBothPolicies,
    SaveOnlyTheseNames,
)
from ckptcli.peers.base import NoPeer

_PLAIN = (
    policies.nothing_saveable,
    policies.everything_saveable,
    policies.dots_saveable,
    policies.dots_with_no_batch_dims_saveable,
)


def checkpointed(function: Any, policy: Policy | None) -> Any:
    """The function, recomputed in backward but for what the policy saves; None for as it is.

    Raises:
        NoPeer: a policy that JAX has no counterpart for.
    """
    import jax

    if policy is None:
        return function
    return jax.checkpoint(function, policy=native_policy(policy))


def native_policy(policy: Policy) -> Any:
    """JAX's policy of the same name.

    Raises:
        NoPeer: a function of the user's own.
    """
    import jax

    native = jax.checkpoint_policies
    if policy in _PLAIN:
        return getattr(native, policy.__name__)
    if isinstance(policy, SaveOnlyTheseNames):
        return native.save_only_these_names(*policy.names)
    if isinstance(policy, SaveAnyNamesButThese):
        return native.save_any_names_but_these(*policy.names)
    if isinstance(policy, SaveFromBothPolicies):
        pair = (native_policy(policy.first), native_policy(policy.second))
        return native.save_from_both_policies(*pair)
    raise NoPeer("the policy is a function of ckpt's values, which JAX has not")
