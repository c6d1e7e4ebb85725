#!/usr/bin/env bash
# Installs the package with each supported major release of Node.js after the oldest, compiles its native modules for
# that release, and runs the demo: one job from its first byte to its verification. Everything comes from the npm registry.
# Usage: scripts/check-nodes.sh [VERSION...]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 22.23.3 24.21.0 26.10.0
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
kind=$(node -p 'process.platform + "-" + process.arch')

package=$(timeout --signal=KILL 300 npm pack --silent --pack-destination "$place" | tail -n 1)
for version in "$@"; do
  node=$place/node-$version
  mkdir "$node"
  echo '{"private":true}' > "$node/package.json"
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$node" "node-$kind@$version"
  home=$node/node_modules/node-$kind
  (
    # The headers that native modules are compiled with come in the same package.
    export PATH="$home/bin:$PATH" npm_config_nodedir="$home"
    npm install --global --silent --no-audit --no-fund --prefix "$place/prefix-$version" "$place/$package"
    cd "$place"
    "$place/prefix-$version/bin/agent" demo --seconds 5 | tail -n 1 | grep equal
  )
  echo "Node.js $version installs and runs the package"
  rm -rf "$node" "$place/prefix-$version"
done
