# Sourced by the scripts: makes sure that .venv has the project and its development tools.
# A fresh Debian or Ubuntu with python3 and python3-venv is enough; the system's Python is untouched.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=${CKPT_VENV:-.venv}
wanted=$(cksum < pyproject.toml)
if [ "$(cat "$venv/.installed-from" 2>/dev/null)" != "$wanted" ]; then
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev,plot]'
    printf '%s\n' "$wanted" > "$venv/.installed-from"
fi
PATH="$(cd "$venv/bin" && pwd):$PATH"
