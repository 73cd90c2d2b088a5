"""A policy by the name that JAX has for it, for a function of the user's own.

ckpt's policies are those of JAX that it has itself; here stands whatever `jax.checkpoint_policies`
of the version that is installed has, `FILE.py:NAME` being a policy of the user's, which JAX asks.

Source: `jax.checkpoint_policies`.
"""

from __future__ import annotations

import ast
from typing import Any

import jax

from ckptcli.checkpoint.policies import described, parse_policy
from ckptcli.checkpoint.policies.base import NoCounterpart
from ckptcli.checkpoint.policies.grammar import brackets_error, expression, name_of
from ckptcli.checkpoint.policies.registry import registry
from ckptcli.checkpoint.user_code import is_user_code, load_name
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.peers.base import NoPeer
from ckptcli.peers.function_strategies import FunctionStrategy

BOTH = "save_from_both_policies"


def policy_names() -> list[str]:
    """Every policy that JAX has."""
    return sorted(vars(jax.checkpoint_policies))


def policy_of(strategy: FunctionStrategy) -> Any:
    """JAX's policy of a strategy; None saves nothing.

    Raises:
        UnknownNameError: JAX has no policy of the name.
        UsageError: arguments that do not fit it.
        NoPeer: it moves values to the host, where they are on a CPU.
    """
    policies = jax.checkpoint_policies
    found = None if strategy.policy is None else parse_jax_policy(strategy.policy)
    if not strategy.names:
        return found
    named = policies.save_only_these_names(*strategy.names)
    return named if found is None else policies.save_from_both_policies(found, named)


def parse_jax_policy(text: str) -> Any:
    """What `NAME`, `NAME(ARGUMENT, ...)` or `FILE.py:NAME` is in JAX.

    Raises:
        UnknownNameError, UsageError, NoPeer: as `policy_of`.
    """
    if is_user_code(text) and "(" not in text:
        return _of_the_users(text)
    return _policy(expression(text), text)


def _policy(node: ast.expr, text: str) -> Any:
    function = node.func if isinstance(node, ast.Call) else node
    arguments = node.args if isinstance(node, ast.Call) else []
    if not isinstance(function, ast.Name | ast.Constant):
        raise brackets_error(text)
    name = name_of(function)
    if is_user_code(name):
        return _of_the_users(name)
    if name == BOTH and len(arguments) == 2:
        return getattr(jax.checkpoint_policies, name)(
            *(_policy(argument, text) for argument in arguments)
        )
    if name in registry():
        return _known(name_of(node))
    known = policy_names()
    if name not in known:
        raise UnknownNameError("policy", name, [*known, *registry()])
    found = getattr(jax.checkpoint_policies, name)
    return found(*map(name_of, arguments)) if _is_maker(found) else found


def _known(text: str) -> Any:
    """The counterpart of one that ckpt has too."""
    policy = described(parse_policy(text))
    if policy.moves_to_host:
        raise NoPeer("on a CPU the library moves nothing to the host: it is there already")
    try:
        return policy.in_jax(jax.checkpoint_policies)
    except NoCounterpart as error:
        raise NoPeer(str(error)) from error


def _is_maker(policy: Any) -> bool:
    """Whether calling it with names gives a policy: a policy itself is given a primitive."""
    return callable(getattr(policy, "__code__", None) and policy("a"))


def _of_the_users(text: str) -> Any:
    policy = load_name(text)
    if not callable(policy):
        raise UsageError(
            f"policy `{text}` is not a function", "it takes a primitive, and is JAX's own"
        )

    def asked(*arguments: Any, **parameters: Any) -> Any:
        try:
            return policy(*arguments, **parameters)
        except Exception as error:  # whatever a policy of the user's raises
            raise UsageError(
                f"policy `{text}` failed: {type(error).__name__}: {error}",
                "JAX calls it as `policy(primitive, *shapes, **parameters)`; one that is given a "
                "ValueInfo is ckpt's own",
            ) from error

    return asked
