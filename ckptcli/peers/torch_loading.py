"""Loading a PyTorch module of the user's own, `FILE.py:MAKE`, and making it again.

`MAKE(**keywords)` returns a `Step`, a mapping with its fields, `(module, input)`, where a tuple of
inputs is passed as so many arguments and a mapping by its keywords, or a module that has an
attribute `example_input`; a class of modules will do.

Invariant: what is made again has the state and the input of the first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import torch

from ckptcli.checkpoint.user_code import (
    import_name,
    is_importable,
    is_user_code,
    load_name,
    refused_arguments,
    running,
)
from ckptcli.checkpoint.user_keywords import check_keywords, keywords_taken
from ckptcli.errors import UsageError
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_step import Step
from ckptcli.peers.torch_inputs import as_asked
from ckptcli.peers.torch_module import SMALLER, UserModule, set_random_states
from ckptcli.peers.torch_optimizer import NAMED, StepOptimizer, made_optimizer

_CONTRACT = (
    "it returns (module, input), a ckptcli.torch.Step, a module with an attribute "
    "`example_input`, or a module alone beside --input 4x3x224x224"
)
_TIMED = ("cpu", "cuda")
_FIELDS = [field.name for field in fields(Step)]


def load_module(request: ModuleRequest, seed: int) -> UserModule:
    """Run the file and call `MAKE`, the random state set to `seed` before each. A step that is at
    hand is copied, so that it stays as it is.

    Raises:
        UsageError: the file cannot be run, or what it makes is no module with an input on the CPU.
        ProgramError: `MAKE` fails; names the line.
    """
    if request.step is None:
        user = _make(request, _maker(request, seed), seed)
    else:
        _check_module(request.text, request.step)
        user = _copied(_opened(UserModule(request, request.step, None)), shares=False)
    if request.accumulate is None:
        return user
    return replace(user, step=replace(user.step, accumulate=request.accumulate))


def another(user: UserModule, seed: int, shares: bool) -> UserModule:
    """What `MAKE` gives when it is called again, with the state and the input of the first; a copy
    where there is none, or where it gives modules or parameters that it has given before.

    `shares` is whether its parameters have the memory of the first's, which are moved by one
    optimizer then.

    Raises:
        ProgramError: `MAKE` fails, or gives another module, or one that cannot be copied.
        UsageError: what it gives is no module with an input.
    """
    if user.make is None:
        return _copied(user, shares)
    other = _make(user.request, user.make, seed)
    if not _parts(user.module).isdisjoint(_parts(other.module)):
        return _copied(user, shares)
    with running(user.text, SMALLER):
        for own, made in zip(_modules(user), _modules(other)):
            made.load_state_dict(own.state_dict())
    if shares:
        _share(user.module, other.module)
        return replace(user, step=_with(user, other.module, user.step.loss))
    loss = _modules(other)[1] if len(_modules(other)) > 1 else user.step.loss
    return replace(user, step=_with(user, other.module, loss), optimizer=other.optimizer)


def _copied(user: UserModule, shares: bool) -> UserModule:
    """Another copy of the module, of its loss and optimizer too unless parameters are shared."""
    loss, optimizer = user.step.loss, user.optimizer
    with running(user.text, SMALLER):
        if shares:
            module = copy.deepcopy(user.module)
            _share(user.module, module)
        elif isinstance(loss, torch.nn.Module):
            module, loss, optimizer = copy.deepcopy((user.module, loss, optimizer))
        else:
            module, optimizer = copy.deepcopy((user.module, optimizer))
    return replace(user, step=_with(user, module, loss), optimizer=optimizer)


def _with(user: UserModule, module: torch.nn.Module, loss: Any) -> Step:
    return replace(user.step, module=module, loss=loss)


def _modules(user: UserModule) -> list[torch.nn.Module]:
    """The module, and the loss that is one."""
    loss = user.step.loss
    return [user.module, *([loss] if isinstance(loss, torch.nn.Module) else [])]


def _share(module: torch.nn.Module, other: torch.nn.Module) -> None:
    """Give the parameters of the other one the memory of the first's."""
    for own, same in zip(module.parameters(), other.parameters()):
        same.data = own.data


def _maker(request: ModuleRequest, seed: int) -> Callable[..., object]:
    text = request.text
    if not is_user_code(text) and not is_importable(text):
        raise UsageError(
            f"--module {text} is not FILE.py:MAKE and not PACKAGE.MODULE:MAKE",
            "write `--module net.py:make`",
        )
    set_random_states(seed)
    make = load_name(text) if is_user_code(text) else import_name(text)
    if not callable(make) or isinstance(make, torch.nn.Module):
        raise UsageError(f"`{text}` is not a function", _CONTRACT)
    check_keywords(text, request.keywords, keywords_taken(make))
    refused = refused_arguments(make, **request.keywords)
    if refused is not None:
        given = (
            f"with {', '.join(request.keywords)} alone" if request.keywords else "without arguments"
        )
        raise UsageError(
            f"`{text}` is called {given}, which it does not take: {refused}",
            "give what it needs with --set NAME=VALUE, or write a function that calls it",
        )
    return make


def _make(request: ModuleRequest, make: Callable[..., object], seed: int) -> UserModule:
    set_random_states(seed)
    with running(request.text, SMALLER):
        made = make(**request.keywords)
    step = as_asked(_step_in(request, made), request, seed)
    user = UserModule(request, step, make)
    for leaf in (*user.parameters(), *user.input_leaves()):
        leaf.grad = None  # a pass that MAKE ran would be in the gradients of the first
    return _opened(user)


def _opened(user: UserModule) -> UserModule:
    """The same with its optimizer.

    Raises:
        UsageError: no module with an input on the CPU, or no optimizer of it.
        ProgramError: what makes the optimizer fails.
    """
    _check(user)
    given = user.step.optimizer or NAMED.get(user.request.optimizer)
    if given is None:
        return user
    with running(user.text, SMALLER):
        parameters = [parameter for _, parameter in user.named_parameters()]
        optimizer = made_optimizer(given, parameters)
    return replace(user, optimizer=StepOptimizer(optimizer, parameters, user.text))


def _step_in(request: ModuleRequest, made: object) -> Step:
    """What `MAKE` means.

    Raises:
        UsageError: nothing of what it may return.
    """
    text = request.text
    if isinstance(made, torch.nn.Module) and request.inputs:
        return Step(made)
    if isinstance(made, torch.nn.Module):
        if not hasattr(made, "example_input"):
            raise UsageError(f"`{text}` gives a module without an input", _CONTRACT)
        made = made, made.example_input
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):
        module, given = made
        return Step(module, (), given) if isinstance(given, Mapping) else Step(module, given)
    step = _in_mapping(text, made) if isinstance(made, Mapping) else made
    if isinstance(step, tuple | list):
        kinds = ", ".join(type(each).__name__ for each in step)
        raise UsageError(
            f"`{text}` gives a {type(step).__name__} of {kinds or 'nothing'}, not (module, input)",
            f"{_CONTRACT}; a loss goes into the Step, several inputs are a tuple: (module, (x, y))",
        )
    if not isinstance(step, Step):
        kind = type(made).__name__
        raise UsageError(f"`{text}` gives an object of type {kind}, not a module", _CONTRACT)
    _check_module(text, step)
    return step


def _check_module(text: str, step: Step) -> None:
    if not isinstance(step.module, torch.nn.Module):
        kind = type(step.module).__name__
        raise UsageError(
            f"`{text}` gives a step whose module is of type {kind}", "`module` is a torch.nn.Module"
        )


def _in_mapping(text: str, made: Mapping[str, object]) -> Step:
    other = next((key for key in made if key not in _FIELDS), None)
    if other is not None or "module" not in made:
        missing = "no `module`" if other is None else f"`{other}`, which no step has"
        raise UsageError(f"`{text}` gives a mapping with {missing}", f"keys: {', '.join(_FIELDS)}")
    return Step(**made)  # type: ignore[arg-type]  # as in a file of the user's


def _check(user: UserModule) -> None:
    compiled = next(
        (path for path, part in user.module.named_modules() if _is_compiled(part)), None
    )
    if compiled is not None:
        raise UsageError(
            f"the module of `{user.text}` is compiled"
            + (f" in `{compiled}`" if compiled else "")
            + ": what watches a pass would have it run op by op",
            "give the module as it is before torch.compile",
        )
    if not user.parameters() and not user.input_leaves():
        raise UsageError(
            f"the module of `{user.text}` has no parameter that requires a gradient, and its input "
            "requires none",
            "leave `requires_grad` on for one",
        )
    if any(tensor.requires_grad and not tensor.is_leaf for tensor in user.input_tensors()):
        raise UsageError(
            f"the input of `{user.text}` was computed under a gradient, which one pass alone can "
            "go back through",
            "detach() it, and requires_grad_() it where its gradient is wanted",
        )
    _check_device(user)


def _check_device(user: UserModule) -> None:
    """Refuse what cannot be timed: a device without a clock of its own, or several.

    Raises:
        UsageError: the module or its input is on one.
    """
    devices = list(dict.fromkeys(tensor.device for tensor in user.own_tensors()))
    away = next((device for device in devices if device.type not in _TIMED), None)
    if away is not None:
        raise UsageError(
            f"`{user.text}` gives a module or an input on `{away}`: a module is timed on "
            "the CPU or a CUDA device",
            "leave the module and its input on the CPU",
        )
    if len(devices) > 1:
        raise UsageError(
            f"`{user.text}` gives a module and an input on {' and '.join(map(str, devices))}",
            "put both on one device",
        )


def _is_compiled(part: torch.nn.Module) -> bool:
    """By `torch.compile`, as a module around it or in place of its call."""
    return hasattr(part, "_orig_mod") or part._compiled_call_impl is not None


def _parts(module: torch.nn.Module) -> set[int]:
    """The modules, parameters and buffers, by `id`."""
    parts = (*module.modules(), *module.parameters(), *module.buffers())
    return {id(part) for part in parts}
