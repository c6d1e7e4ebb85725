#!/usr/bin/env bash
# Installs the package with each of these releases of Node.js, compiles its native modules for it, and runs the demo: one
# job from its first byte to its verification. Everything comes from the npm registry. The modules are compiled without
# optimisation: whether they can be, and whether they load, is asked here.
# Usage: scripts/check-nodes.sh VERSION...
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
kind=$(node -p 'process.platform + "-" + process.arch')
export CFLAGS=-O0 CXXFLAGS=-O0

package=$(timeout --signal=KILL 300 npm pack --silent --pack-destination "$place" | tail -n 1)
check() {
  local version=$1 node=$place/node-$1
  mkdir "$node"
  echo '{"private":true}' > "$node/package.json"
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$node" "node-$kind@$version"
  # The headers that native modules are compiled with come in the same package.
  local home=$node/node_modules/node-$kind
  export PATH="$home/bin:$PATH" npm_config_nodedir="$home" npm_config_build_from_source=true
  npm install --global --silent --no-audit --no-fund --prefix "$place/prefix-$version" "$place/$package"
  cd "$place"
  "$place/prefix-$version/bin/agent" demo --seconds 2 | tail -n 1 | grep equal
  echo "Node.js $version installs and runs the package"
  rm -rf "$node" "$place/prefix-$version"
}

# Two at a time: most of it is one compiler that works on one file.
export -f check
export place kind package
printf '%s\n' "$@" | xargs -I '{}' -P 2 bash -euo pipefail -c 'check {}'
