#!/bin/sh
# The program with its own Node.js, from wherever the archive was unpacked, also through a symbolic link.
here=$(dirname "$(readlink -f "$0")")
exec "$here/../lib/node" "$here/../lib/jobtail/dist/cli/main.js" "$@"
