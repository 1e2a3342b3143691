#!/bin/sh
# Finds a Python that is new enough and lets set_up.py do the rest: set_up.sh app|quick|test|newest|system|bench|soak|screenshots
here=${0%/*}
for python in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        exec "$python" -P "$here/set_up.py" "$@"
    fi
done
echo "subdeck needs Python 3.11 or newer; none of python3, python3.11 … python3.14 on PATH is one." >&2
echo "  Debian 12 and newer: sudo apt-get install python3 python3-venv" >&2
exit 1
