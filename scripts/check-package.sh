#!/usr/bin/env bash
# What `npm pack` makes, installed as docs/service.md describes (but into a prefix of its own), and run from
# there. The SQLite module of this checkout is handed over as the prebuilt one that people download:
# compiling it takes minutes, and `npm test` has shown that it can be compiled. BUILD=1 compiles it all the same.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

module=node_modules/better-sqlite3
if [ "${BUILD:-}" != 1 ]; then
  mkdir "$place/prebuilt"
  name=$(node -p 'const { platform, arch, versions } = process; `node-v${versions.modules}-${platform}-${arch}`')
  version=$(node -p "require('./$module/package.json').version")
  tar -czf "$place/prebuilt/better-sqlite3-v$version-$name.tar.gz" -C "$module" build/Release/better_sqlite3.node
  export npm_config_better_sqlite3_local_prebuilds="$place/prebuilt"
fi

# npm sometimes stands still for ever while it packs.
package=''
for _ in 1 2 3; do
  package=$(timeout --signal=KILL 300 npm pack --silent --pack-destination "$place" | tail -n 1) && [ -n "$package" ] && break
done
installed=$place/prefix/lib/node_modules/jobtail
npm install --global --silent --prefer-offline --no-audit --no-fund --prefix "$place/prefix" "$place/$package"
# Fails where a package is missing or has another version than it should.
(cd "$installed" && npm ls --all --omit=dev > /dev/null)
cd "$place"
export PATH="$place/prefix/bin:$PATH"

version=$(agent --version)
agent --help > /dev/null
agent completion bash | bash -n
for file in systemd/agent.service systemd/agent@.service config.example.yaml docs/agent.1 docs/jobtail.1 docs/alerts.yaml README.md dist/THIRD-PARTY-LICENSES dist/view/page/index.html dist/view/page/THIRD-PARTY-LICENSES; do
  test -s "$installed/$file"
done
test ! -e "$installed/src" && test ! -e "$installed/test"
test -s "$place/prefix/share/man/man1/agent.1" && test -s "$place/prefix/share/man/man1/jobtail.1"
agent demo --seconds 5 | tail -n 1 | grep equal
echo "the package of version $version installs and runs"
