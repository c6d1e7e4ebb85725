#!/bin/bash
# Starts a real systemd as PID 1 of namespaces of its own, on a throw-away overlay of this machine, with the directory
# APP at /opt/app (read-only) and the program NODE as /usr/local/bin/node. Prints `ready PID`, the PID to give to
# `nsenter -t PID -m -u -i -n -p -C`, and ends everything when its standard input ends. Needs root, util-linux, iproute2
# and an installed systemd.
# usage: systemd-namespace.sh APP NODE
#
# A systemd is never started without its own PID namespace and its own cgroup2 mount: it would take all processes of the
# machine into its own groups.
set -euo pipefail
APP=$(realpath "$1") NODE=$(realpath "$2")
W=$(mktemp -d /tmp/systemd-namespace.XXXXXX) NS=0 LEADER=0
CG=/sys/fs/cgroup/unified
[ -d $CG ] || CG=/sys/fs/cgroup
CG=$CG/jobtail-test-$$

cleanup() {
  set +e
  # The signal that asks systemd to power off.
  [ $LEADER != 0 ] && kill -s RTMIN+4 $LEADER 2>/dev/null
  for _ in $(seq 100); do [ -d /proc/$NS ] || break; sleep .1; done
  [ $NS != 0 ] && kill -9 $NS 2>/dev/null
  wait 2>/dev/null
  find "$CG" -depth -type d -exec rmdir {} \; 2>/dev/null
  rm -rf "$W"
}
trap cleanup EXIT
mkdir "$CG"

cat > "$W/inner.sh" <<'INNER'
set -e
W=$1 APP=$2 NODE=$3 R=$W/t/root
mount --make-rprivate /
mkdir "$W/t"; mount -t tmpfs tmpfs "$W/t"; mkdir "$W/t/up" "$W/t/wk" "$R"
mount -t overlay overlay -o "lowerdir=/,upperdir=$W/t/up,workdir=$W/t/wk" "$R"
mount -t proc proc "$R/proc"
mount -t sysfs -o ro sysfs "$R/sys"
mount -t cgroup2 cgroup2 "$R/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$R/dev"
for n in null zero full random urandom tty; do touch "$R/dev/$n"; mount --bind /dev/$n "$R/dev/$n"; done
mkdir "$R/dev/pts" "$R/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$R/dev/pts"
mount -t tmpfs tmpfs "$R/dev/shm"
ln -s pts/ptmx "$R/dev/ptmx"; ln -s /proc/self/fd "$R/dev/fd"
for i in 0:stdin 1:stdout 2:stderr; do ln -s /proc/self/fd/${i%:*} "$R/dev/${i#*:}"; done
touch "$R/dev/console"; mount --bind /dev/null "$R/dev/console"
mount -t tmpfs -o mode=755 tmpfs "$R/run"
mount -t tmpfs -o mode=1777 tmpfs "$R/tmp"
# What was installed on this machine must not be what is tested.
rm -rf "$R/etc/agent" "$R/var/lib/agent" "$R/srv/agent"
mkdir -p "$R/opt/app"; mount --bind "$APP" "$R/opt/app"; mount -o remount,bind,ro "$R/opt/app"
rm -f "$R/usr/local/bin/node"; touch "$R/usr/local/bin/node"; mount --bind "$NODE" "$R/usr/local/bin/node"
ip link set lo up
hostname service-test
cd "$R"; mkdir -p oldroot; pivot_root . oldroot; umount -l /oldroot; rmdir /oldroot
# systemd-sysctl would write the settings of the machine.
mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys
# LoadCredential= needs mounts that spread.
mount --make-rshared /
exec env -i container=service-test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
  /lib/systemd/systemd --system systemd.unit=basic.target systemd.mask=ssh.socket systemd.show_status=0 </dev/null
INNER

( echo $BASHPID > "$CG/cgroup.procs"
  exec unshare --pid --mount --uts --ipc --net --cgroup --fork --kill-child bash "$W/inner.sh" "$W" "$APP" "$NODE"
) > "$W/console.log" 2>&1 < /dev/null &
NS=$!
inside() { nsenter -t "$LEADER" -m -u -i -n -p -C "$@"; }
for _ in $(seq 200); do
  LEADER=$(pgrep -x systemd -P $NS) && break
  LEADER=0
  [ -d /proc/$NS ] || break
  sleep .1
done
if [ $LEADER = 0 ]; then cat "$W/console.log" >&2; exit 1; fi
for _ in $(seq 300); do
  case $(inside systemctl is-system-running 2>/dev/null) in running|degraded) echo "ready $LEADER"; break;; esac
  sleep .1
done
cat > /dev/null
