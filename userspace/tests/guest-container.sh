#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: guest-container.sh BUILD
# The statements of docs/containers.md, in containers made with unshare(1): nobody has
# namespaces of users, processes and mounts, with and without the device. Prints TAP.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

ctl=$build/flowfdctl
# Python wants random numbers, which a /dev in a container does not have.
export PYTHONHASHSEED=0
here=$(mktemp -d) || exit 1
chmod 755 "$here"
trap 'rm -rf "$here"' EXIT
[ -e /dev/flowfd ] ||
	tap_skip_all "containers" "the module is not loaded"

# container DEVICES COMMAND: runs a shell command as root of an unprivileged container,
# whose /dev has null and DEVICES
cat >"$here/container" <<'END'
given=$1
shift
for device in null $given; do
	mount --bind "/dev/$device" "$HERE/$device"
done
mount -t tmpfs none /dev
for device in null $given; do
	touch "/dev/$device"
	mount --bind "$HERE/$device" "/dev/$device"
done
exec sh -c "$*"
END
touch "$here/null" "$here/flowfd"

container() {
	HERE=$here setpriv --reuid 65534 --regid 65534 --clear-groups \
		unshare -Urmpf --mount-proc sh "$here/container" "$@" 2>&1
}

[ -e /proc/self/ns/pid ] ||
	tap_skip_all "containers" "this kernel has no PID namespaces"
if ! output=$(container "" true); then
	tap_is "$output" "" "containers can be made here"
	tap_done
fi
tap_is "$(container "" 'id -u; ps -e -o pid= | head -n 1 | tr -d " "')" \
	"0
1" "a container has its own root and its own processes"

# --- with the device
tap_is "$(container flowfd "FLOWFD_BACKEND=module $build/examples/ring")" \
	"3000 events of 3 counters" "counters and a ring"
tap_is "$(container flowfd "$ctl info" | sed '$d')" "$("$ctl" info | sed '$d')" "flowfdctl info"
tap_is "$(container flowfd "$ctl list")" "flowfdctl: only root may see all counters and \
rings: 'flowfdctl list --pid PID' shows one process" "flowfdctl list, with its root"
tap_is "$(container flowfd "chmod 600 /dev/flowfd" 2>&1 |
	grep -c 'Operation not permitted')" 1 "its root cannot change the device"

# Memory of rings: the root of a container is an unprivileged user.
big="import ctypes
flowfd = ctypes.CDLL('$build/libflowfd.so')
flowfd.flowfd_ring_strerror.restype = ctypes.c_char_p
ring = (ctypes.c_uint64 * 64)()  # more than a struct flowfd_ring
print(flowfd.flowfd_ring_strerror(flowfd.flowfd_ring_create(ring, 1 << 20, 0)).decode())"
tap_is "$(container flowfd "prlimit --memlock=8388608 python3 -c \"$big\"")" \
	"no memory, or the ring would exceed RLIMIT_MEMLOCK (ulimit -l)" \
	"its rings are charged to the user"
tap_is "$(python3 -c "$big")" "Success" \
	"the limit does not apply to the machine's root"

# --- the view from inside and from outside
mkdir -m 777 "$here/shared"
cat >"$here/inside.py" <<'END'
import os, sys, time
ctl, shared = sys.argv[1:]
fd = os.open("/dev/flowfd", os.O_RDWR)
os.eventfd_write(fd, 5)
os.system(f"{ctl} list --pid {os.getpid()} >{shared}/new 2>&1")
os.rename(f"{shared}/new", f"{shared}/inside")
while not os.path.exists(f"{shared}/done"):
    time.sleep(0.05)
END
container flowfd "python3 $here/inside.py $ctl $here/shared" >"$here/log" &
inside=$!
until [ -e "$here/shared/inside" ]; do
	sleep 0.1
	kill -0 $inside 2>/dev/null || break
done
sed 's/^/# /' "$here/log"
exec 8<>/dev/flowfd
"$ctl" list >"$here/outside"
exec 8<&-
touch "$here/shared/done"
wait $inside
# columns FILE COLUMN: ID, process (in that column) and count of Python's counters
columns() {
	awk -v process="$2" '$10 == "python3" { print $1, $process, $4 }' "$1"
}
# shellcheck disable=SC2046 # words
set -- $(columns "$here/shared/inside" 2) $(columns "$here/outside" 3)
tap_is "$# $1 $3 $6" "6 $4 5 5" "a counter has one id inside and outside"
tap_is "$((${2:-0} < ${5:-0}))" 1 \
	"and another process number: $2 inside, $5 outside"
tap_is "$(grep -c 'count  guest-container$' "$here/outside") \
$(grep -c 'count  guest-container$' "$here/shared/inside")" "1 0" \
	"objects outside are not visible inside"

# --- without the device
tap_is "$(container "" "$ctl info" | tail -n 1)" "flowfdctl: the flowfd module is loaded, \
but its device is not here: a container must be given /dev/flowfd" \
	"without the device flowfdctl says so"
tap_is "$(container "" "$build/flowfd-run true")" "flowfd-run: true runs without \
flow control: the flowfd module is not loaded: run 'modprobe flowfd' as root \
(package flowfd-dkms)" "and programs run without flow control"
node="$((0x$(stat -c %t /dev/flowfd))) $((0x$(stat -c %T /dev/flowfd)))"
tap_is "$(container "" "mknod /dev/flowfd c $node" |
	grep -c 'Operation not permitted')" 1 "its root cannot make one"

# --- restricted by the administrator
mode=$(stat -c %a /dev/flowfd)
chmod 660 /dev/flowfd
tap_is "$(container flowfd "$ctl info" | tail -n 1)" "flowfdctl: this user may not \
open /dev/flowfd: root can change that with a udev rule; or a filter of seccomp(2) refuses \
a call" \
	"the mode of the device counts"
chmod "$mode" /dev/flowfd
tap_is "$(container flowfd \
	"mount -o remount,bind,nodev /dev/flowfd && $ctl info" | tail -n 1)" "flowfdctl: this \
user may not open /dev/flowfd: root can change that with a udev rule; or a filter of \
seccomp(2) refuses a call" \
	"nodev counts, too"

# --- a descriptor that was passed in
tap_is "$(container "" "python3 -c 'import ctypes, os
os.eventfd_write(9, 7)
print(os.eventfd_read(9))
create_on = ctypes.CDLL(\"$build/libflowfd.so\").flowfd_counter_create_on
other = create_on(9, bytes(32), ctypes.c_size_t(32))
print(os.readlink(f\"/proc/self/fd/{other}\"))
print(os.strerror(-create_on(other, bytes(32), ctypes.c_size_t(32))))'" 9<>/dev/flowfd)" \
	"7
anon_inode:[flowfd]
Operation not permitted" "a descriptor that is passed in works, and makes more"
tap_done
