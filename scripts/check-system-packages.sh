#!/usr/bin/env bash
# Tries what `npm run package` makes in systems where nothing of the project was ever installed, without a network: the
# archive and the .deb on an older and a newer Debian, the .rpm where there is rpm, the container image with a read-only
# root. Needs root, mmdebstrap, rpmbuild and buildah. BUILT=1 takes what is in packages/ already.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
chmod 755 "$place"
storage=(--root "$place/storage" --runroot "$place/storage-run" --storage-driver overlay)
trap 'buildah "${storage[@]}" umount --all > /dev/null 2>&1 || true; rm -rf --one-file-system "$place"' EXIT

# debian SUITE [PACKAGE...]: packs a fresh Debian
debian() {
  local suite=$1
  shift
  mmdebstrap --quiet --variant=minbase --mode=root ${1:+--include="$(IFS=,; echo "$*")"} \
    "$suite" "$place/$suite.tar" http://deb.debian.org/debian
}
debian bullseye & bullseye=$!
debian trixie rpm & trixie=$!
[ "${BUILT:-}" = 1 ] || npm run --silent package
wait "$bullseye"
wait "$trixie"

(cd packages && sha256sum --quiet --check SHA256SUMS)
size=$(stat -c %s packages/jobtail-*-linux-*.tar.gz)
[ "$size" -le 45000000 ] || { echo "the archive has $size bytes: more than 45 MB"; exit 1; }

# inside ROOT COMMANDS: runs them in the root, in namespaces of their own; its network is its loopback
inside() {
  unshare --net --mount --pid --fork bash -euo pipefail -c '
    ip link set lo up
    [ "$3" != read-only ] || { mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; mount -t tmpfs tmpfs "$1/tmp"; }
    mount -t proc proc "$1/proc"
    mount -t tmpfs tmpfs "$1/dev"
    for name in null zero urandom random full tty; do touch "$1/dev/$name"; mount --bind "/dev/$name" "$1/dev/$name"; done
    mkdir "$1/dev/shm"; chmod 1777 "$1/dev/shm"
    for volume in $4; do mount -t tmpfs -o uid=10001,gid=10001,mode=0750 tmpfs "$1$volume"; done
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$1" bash -euo pipefail -c "$2"
  ' - "$1" "$2" "${3:-}" "${4:-}"
}

for suite in bullseye trixie; do
  root=$place/$suite
  mkdir "$root" "$root/packages"
  tar -xf "$place/$suite.tar" -C "$root"
  cp packages/jobtail* "$root/packages/"
  inside "$root" '
    useradd --create-home tester
    cd /home/tester
    su tester -c "tar xzf /packages/jobtail-*-linux-*.tar.gz && jobtail-*/bin/agent demo --seconds 2" | tail -n 1 | grep equal
    test ! -e /usr/bin/agent
    dpkg -i /packages/*.deb > /dev/null
    getent group jobtail > /dev/null
    su tester -c "agent demo --seconds 2" | tail -n 1 | grep equal
    su tester -c "agent version --json" | grep -A 3 unix-dgram | grep "\"error\": null"
    mkdir -p /srv/agent/501 /var/lib/agent/state/spill /var/lib/agent/mirror/501 /var/lib/agent-smith/state /etc/agent/second
    touch /var/lib/agent/state/agent.db /var/lib/agent-smith/state/agent.db /etc/agent/config.yaml
    id jobtail-agent > /dev/null
    echo secret > /etc/agent/password
    dpkg -i /packages/*.deb > /dev/null
    dpkg --remove jobtail > /dev/null
    test -e /etc/agent/password -a -e /var/lib/agent/state/agent.db -a ! -e /usr/lib/jobtail
    dpkg --purge jobtail > /dev/null
    test ! -e /etc/agent/password -a ! -e /var/lib/agent/state -a -e /var/lib/agent/mirror/501 -a -e /srv/agent/501
    test -e /var/lib/agent-smith/state/agent.db -a -e /etc/agent/second
  '
  echo "$suite: the archive and the .deb run"
done

inside "$place/trixie" '
  userdel jobtail-agent
  if getent group jobtail > /dev/null; then groupdel jobtail; fi
  rpm --install --nodeps --noplugins /packages/*.rpm
  su tester -c "agent demo --seconds 2" | tail -n 1 | grep equal
  getent group jobtail > /dev/null
  rpm --erase --noplugins jobtail
  test ! -e /usr/bin/agent -a ! -e /usr/lib/jobtail
'
echo 'the .rpm runs'
rm -rf --one-file-system "$place/bullseye" "$place/trixie"

# The registry of the image that the Containerfile names may be out of reach: a Debian is the same for the agent.
export BUILDAH_ISOLATION=chroot
# Not on every file system.
buildah "${storage[@]}" info > /dev/null 2>&1 || storage=(--root "$place/copies" --runroot "$place/copies-run" --storage-driver vfs)
base=$(buildah "${storage[@]}" from scratch)
buildah "${storage[@]}" add --quiet "$base" "$place/trixie.tar" / > /dev/null
buildah "${storage[@]}" commit --quiet --rm "$base" localhost/base > /dev/null
mkdir "$place/context"
cp packages/jobtail-*-linux-*.tar.gz "$place/context/"
buildah "${storage[@]}" build --quiet --format docker --build-arg BASE=localhost/base \
  --file packaging/container/Containerfile --tag localhost/jobtail "$place/context" > /dev/null
container=$(buildah "${storage[@]}" from localhost/jobtail)
of_image() { buildah "${storage[@]}" inspect --type image --format "$1" localhost/jobtail; }
[ "$(of_image '{{.OCIv1.Config.User}}')" = 10001:10001 ]
[ "$(of_image '{{.OCIv1.Config.Entrypoint}}')" = '[/usr/bin/tini -- /usr/bin/agent]' ]
# As words of a shell.
health=$(buildah "${storage[@]}" inspect --type image localhost/jobtail | node -e '
  const { Docker } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
  const [kind, ...line] = Docker.config.Healthcheck.Test;
  if (kind !== "CMD") throw new Error(kind);
  console.log(line.map((word) => JSON.stringify(word)).join(" "));')
image=$(buildah "${storage[@]}" mount "$container")
# Beside the image's own files, as a volume would be.
cat > "$image/opt/try.sh" <<TRY
set -euo pipefail
is_healthy() { $health; }
! touch /written 2> /dev/null
cd /tmp
agent sandbox --directory /tmp/sandbox --port 8090 --job --seconds 2 > sandbox.yaml &
until grep -q '# Job ' sandbox.yaml; do sleep 0.2; done
sed 's#./mirror#/srv/agent#; s#./state#/var/lib/agent/state#' sandbox.yaml > config.yaml
echo 'metrics: {listen: 127.0.0.1:9464}' >> config.yaml
! is_healthy
agent run --config config.yaml 2> agent.log &
until is_healthy; do sleep 0.2; done
agent watch 501 --config config.yaml > /dev/null
until cat /srv/agent/501/live/*/stdout.log | grep -q .; do sleep 0.2; done
agent sync 501 --config config.yaml | grep 'verified against the raw bytes'
TRY
inside "$image" '
  exec timeout 120 setpriv --reuid 10001 --regid 10001 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs \
    bash /opt/try.sh
' read-only '/var/lib/agent /srv/agent'
echo 'the container image runs: without root, on a read-only root, and is healthy'
