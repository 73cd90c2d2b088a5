"""`python -m ckptcli` is `ckpt`."""

from ckptcli.cli.entry import main

if __name__ == "__main__":
    main()
