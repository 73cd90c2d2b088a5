"""Every option of every command, declared once, as data.

A field of a class declares one option: what it is, what it is for, and who gets it.
Groups of such fields make the options of a command. Flags, help, `[ckpt]` keys, `CKPT_*` variables,
completion, warnings, refusals, the command lines of child processes and the one that measures again
are folds over the list that `listing.options_of` reads from them.

Invariant: nothing here imports click or an array library, so that a help text costs nothing.
"""
