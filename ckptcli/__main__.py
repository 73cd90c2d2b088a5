"""`python -m ckptcli` is `ckpt`."""

from ckptcli.cli.main import main

if __name__ == "__main__":
    main()
