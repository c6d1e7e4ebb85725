#!/usr/bin/env bash
# Tries what `npm run package` makes in roots where nothing of the project was ever installed, without a network: the
# archive and the .deb on an older and a newer Debian, the .rpm in a root that has rpm. Needs root, mmdebstrap, rpmbuild.
set -euo pipefail
cd "$(dirname "$0")/.."
npm run --silent package
(cd packages && sha256sum --quiet --check SHA256SUMS)
size=$(stat -c %s packages/jobtail-*-linux-*.tar.gz)
[ "$size" -le 45000000 ] || { echo "the archive has $size bytes: more than 45 MB"; exit 1; }

place=$(mktemp -d)
chmod 755 "$place"
trap 'rm -rf --one-file-system "$place"' EXIT

# root SUITE [PACKAGE...]: a fresh Debian, with the packages that were made in /packages
root() {
  local suite=$1
  shift
  mmdebstrap --quiet --variant=minbase --mode=root ${1:+--include="$(IFS=,; echo "$*")"} "$suite" "$place/root" http://deb.debian.org/debian
  mkdir "$place/root/packages"
  cp packages/jobtail* "$place/root/packages/"
}

# inside COMMANDS: runs them in the root, in namespaces of their own; its network is its loopback
inside() {
  unshare --net --mount --pid --fork bash -euo pipefail -c '
    ip link set lo up
    mount -t proc proc "$1/proc"
    mount -t tmpfs tmpfs "$1/dev"
    for name in null zero urandom random full tty; do touch "$1/dev/$name"; mount --bind "/dev/$name" "$1/dev/$name"; done
    mkdir "$1/dev/shm"; chmod 1777 "$1/dev/shm"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$1" bash -euo pipefail -c "$2"
  ' - "$place/root" "$1"
}

drop() { rm -rf --one-file-system "$place/root"; }

for suite in bullseye trixie; do
  root "$suite"
  inside '
    useradd --create-home somebody
    cd /home/somebody
    su somebody -c "tar xzf /packages/jobtail-*-linux-*.tar.gz && jobtail-*/bin/agent demo --seconds 5" | tail -n 1 | grep equal
    test ! -e /usr/bin/agent
    dpkg -i /packages/*.deb > /dev/null
    getent group jobtail > /dev/null
    su somebody -c "agent demo --seconds 5" | tail -n 1 | grep equal
    mkdir -p /srv/agent/501 /var/lib/private/agent
    echo secret > /etc/agent/password
    dpkg -i /packages/*.deb > /dev/null
    dpkg --remove jobtail > /dev/null
    test -e /etc/agent/password -a -e /var/lib/private/agent -a ! -e /usr/lib/jobtail
    dpkg --purge jobtail > /dev/null
    test ! -e /etc/agent -a ! -e /var/lib/private/agent -a -e /srv/agent/501
  '
  drop
  echo "$suite: the archive and the .deb run"
done

root bookworm rpm
inside '
  rpm --install --nodeps /packages/*.rpm
  useradd --create-home somebody
  su somebody -c "agent demo --seconds 5" | tail -n 1 | grep equal
  getent group jobtail > /dev/null
  rpm --erase jobtail
  test ! -e /usr/bin/agent -a ! -e /usr/lib/jobtail
'
echo 'the .rpm runs'
