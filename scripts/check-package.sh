#!/usr/bin/env bash
# What `npm pack` makes, installed as people install it (`npm install -g`, into a prefix of its own) and run from there.
# Takes a minute or two where the SQLite module has to be compiled.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

package=$(npm pack --silent --pack-destination "$place" | tail -n 1)
npm install --global --silent --no-audit --no-fund --prefix "$place/prefix" "$place/$package"
cd "$place"
export PATH="$place/prefix/bin:$PATH"

version=$(agent --version)
agent --help > /dev/null
agent completion bash | bash -n
installed=$place/prefix/lib/node_modules/jobtail
for file in systemd/agent.service systemd/agent@.service config.example.yaml docs/agent.1 docs/alerts.yaml README.md; do
  test -s "$installed/$file"
done
test ! -e "$installed/src" && test ! -e "$installed/test"
test -s "$place/prefix/share/man/man1/agent.1"
agent demo --seconds 5 | tail -n 1 | grep -q equal
echo "the package of version $version installs and runs"
