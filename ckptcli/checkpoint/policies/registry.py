"""The policies by name. A policy registers itself; its file is all that it takes."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from typing import TypeVar

import ckptcli.checkpoint.policies as package
from ckptcli.checkpoint.policies.base import BasePolicy, Policy
from ckptcli.checkpoint.policies.grammar import brackets_error, expression, name_of
from ckptcli.checkpoint.user_code import is_user_code, load_name
from ckptcli.errors import UnknownNameError, UsageError

_REGISTRY: dict[str, type[BasePolicy]] = {}

PolicyClass = TypeVar("PolicyClass", bound=type[BasePolicy])


def register(policy: PolicyClass) -> PolicyClass:
    """Class decorator: makes the policy known under its `keyword`."""
    _REGISTRY[policy.keyword] = policy
    return policy


def registry() -> dict[str, type[BasePolicy]]:
    """Every policy by name."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items()))


def parse_policy(text: str) -> Policy:
    """The policy that `NAME`, `NAME(ARGUMENT, ...)` or `FILE.py:NAME` stands for.

    Raises:
        UnknownNameError: no policy has this name.
        UsageError: arguments that do not fit it, or a name that is no function.
    """
    name = text.partition("(")[0].strip()
    policies = registry()
    if name in policies:
        return _policy_of(expression(text), text)
    if is_user_code(text):
        return _load(text.strip())
    raise UnknownNameError("policy", name, policies)


def _policy_of(node: ast.expr, text: str) -> Policy:
    """The policy that an expression within `text` stands for."""
    arguments: list[ast.expr] = []
    if isinstance(node, ast.Call):
        arguments = node.args
        node = node.func
    if isinstance(node, ast.Constant) and not arguments and is_user_code(name_of(node)):
        return _load(name_of(node))
    if not isinstance(node, ast.Name | ast.Constant):
        raise brackets_error(text)
    name, policies = name_of(node), registry()
    if name not in policies:
        raise UnknownNameError("policy", name, policies)
    return policies[name].parse(arguments, lambda argument: _policy_of(argument, text))


def _load(text: str) -> Policy:
    policy = load_name(text)
    if not callable(policy):
        raise UsageError(f"policy `{text}` is not a function", "it takes a `ValueInfo`")
    return policy
