#!/bin/sh
# The program with its own Node.js, from wherever the archive was unpacked, also through a symbolic link.
here=$(readlink -f "$0")
here=${here%/*}
# No debugger at SIGUSR1. Without the second option, each process reserves 10 GB of addresses: too many where ulimit -v
# limits them.
# Less room for new objects saves 4 MB of an agent. With this option, V8 refuses its stored code: no other command has it.
heap=
[ "${1-}" != run ] || heap=--max-semi-space-size=2
exec "$here/../lib/node" --disable-sigusr1 --disable-wasm-trap-handler $heap "$here/../lib/jobtail/dist/cli/main.js" "$@"
