#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# module-package.sh: the package of a module, and its signature. Prints TAP.
# shellcheck disable=SC2034,SC2317 # variables of the functions; called by name
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
data=$PWD/livepatch
unset DEBFULLNAME DEBEMAIL
cd "$(mktemp -d)" || exit
say()
{
	echo "$@"
}
# shellcheck source-path=SCRIPTDIR source=../built-module.sh
. "$data/built-module.sh"
# shellcheck source-path=SCRIPTDIR source=../builder/module-package.sh
. "$data/builder/module-package.sh"

mkdir built out
echo 'const char info[] __attribute__((section(".modinfo"))) = "license=GPL";' > info.c
gcc -c -o "built/$file" -x c info.c
python3 "$data/builder/add-modinfo.py" "built/$file" version=0.2.0-abc \
	"flowfd_fixes=epoll userfaultfd" flowfd_kernel=1234
touch -d '2026-11-20 10:11:12 UTC' "built/$file"
cp "built/$file" unsigned

kernel=6.12.1+deb13-amd64
name=flowfd-livepatch-${kernel}_0.2.0+20261120101112_amd64.deb
tap_is "$(make_package $kernel "$PWD/built" out)" "made out/$name" "a package"
tap_is "$(dpkg-deb -f "out/$name" Package Version Architecture Depends)" \
	"Package: flowfd-livepatch-$kernel
Version: 0.2.0+20261120101112
Architecture: amd64
Depends: flowfd-livepatch (>= 0.2.0)" "its fields"
tap_is "$(dpkg-deb -f "out/$name" Description)" "livepatch of flowfd for Linux $kernel
 Fixes: epoll userfaultfd. Made from 0.2.0-abc, for the
 kernel with build ID
 1234.
 flowfd-livepatch(8) says how to load it." "its description"
doc=./usr/share/doc/flowfd-livepatch-$kernel
tap_is "$(dpkg-deb --fsys-tarfile "out/$name" | tar -tv | awk '{ print $1, $2, $6 }' |
	grep -v '/$')" "-rw-r--r-- root/root ./usr/lib/flowfd-livepatch/$kernel/$file
-rw-r--r-- root/root $doc/changelog.gz
-rw-r--r-- root/root $doc/copyright" "its files"
dpkg-deb -x "out/$name" tree
tap_is "$(zcat tree/$doc/changelog.gz)" "flowfd-livepatch-$kernel (0.2.0+20261120101112) \
unstable; urgency=medium

  * Made from 0.2.0-abc.

 -- flowfd-livepatch <root@localhost>  Fri, 20 Nov 2026 10:11:12 +0000" "its changelog"
tap_ok "the module" cmp unsigned "tree/usr/lib/flowfd-livepatch/$kernel/$file"
dpkg-deb -e "out/$name" control
tap_ok "its scripts" sh -n control/postinst control/prerm
tap_is "$(cd tree && md5sum -c --quiet ../control/md5sums && wc -l < ../control/md5sums)" 3 \
	"its checksums"

# Its scripts, where systemctl says what it is told, and which units are enabled.
mkdir bin modules systemd
cat > bin/fake <<'TEXT'
#!/bin/sh
case ${0##*/}:$* in
uname:*) echo "$KERNEL" ;;
ischroot:*) false ;;
systemd-detect-virt:*) [ "$CONTAINER" ] ;;
systemctl:*is-enabled*) echo "$*" | grep -q "${ENABLED:-nothing}" ;;
flowfd-livepatch:unload) echo unload && rmdir modules/* ;;
*) echo "$*" ;;
esac
TEXT
chmod +x bin/fake
for command in uname ischroot systemd-detect-virt systemctl flowfd-livepatch; do
	ln -s fake "bin/$command"
done
sed -i "s|/sys/module|$PWD/modules|; s|/run/systemd/system|$PWD/systemd|" control/*
# does SCRIPT ARGUMENT...: prints what it does
does()
{
	PATH=$PWD/bin:$PATH KERNEL=${kernel_that_runs:-$kernel} sh "control/$1" "${@:2}"
}
export CONTAINER='' ENABLED=''
tap_is "$(does postinst configure "")" "" "nothing is loaded that is not enabled"
for ENABLED in flowfd-livepatch.service flowfd-livepatch.timer; do
	tap_is "$(does postinst configure "")" "load" "$ENABLED: loaded"
	tap_is "$(does postinst configure 1)" "" "$ENABLED: not if it was unloaded"
	mkdir modules/flowfd_livepatch_1
	tap_is "$(does postinst configure 1)" "load" "$ENABLED: a newer one takes over"
	tap_is "$(CONTAINER=1 does postinst configure 1; CONTAINER=1 does prerm remove)" "" \
		"not in a container"
	tap_is "$(kernel_that_runs=6.1 does postinst configure 1
		kernel_that_runs=6.1 does prerm remove)" "" "not for another kernel"
	tap_is "$(does prerm upgrade)" "" "an upgrade does not unload"
	rmdir systemd
	rm bin/systemd-detect-virt
	tap_is "$(does prerm remove)" "" "nor a removal in a container without systemd"
	mkdir systemd
	ln -s fake bin/systemd-detect-virt
	tap_is "$(does prerm remove)" "stop flowfd-livepatch
unload" "the removal does"
done
mkdir modules/flowfd_livepatch_1
tap_is "$(ENABLED='' does postinst configure 1)" "" "no newer one where that is not enabled"

openssl req -new -x509 -nodes -batch -subj /CN=test -keyout key -out certificate 2> /dev/null
cp -a built with-package
tap_is "$(sign_module with-package key certificate)" "signed with-package/$file" "a signature"
cp "with-package/$file" signed
tap_ok "the package has a higher version" dpkg --compare-versions \
	"$(package_version "with-package/$file")" gt "$(package_version "built/$file")"
rm -r tree out/*
make_package $kernel "$PWD/with-package" out > /dev/null
dpkg-deb -x out/*.deb tree
tap_ok "a package has the signed module" cmp signed "tree/usr/lib/flowfd-livepatch/$kernel/$file"
tap_ok "signed and not" eval 'is_signed signed && ! is_signed unsigned'
sign_module with-package key certificate > /dev/null
tap_is "$(stat -c %s "with-package/$file")" "$(stat -c %s signed)" "a second signature replaces it"
length=$((16#$(tail -c 32 signed | head -c 4 | od -An -tx1 | tr -d ' ')))
tail -c $((length + 40)) signed | head -c "$length" > signature
tap_ok "the signature" openssl cms -verify -binary -inform DER -in signature \
	-content unsigned -certfile certificate -CAfile certificate -purpose any -out checked
tap_is "$(sign_module built /nothing /nothing 2> /dev/null; echo "status $?"; ls built)" \
	"status 2
$file" "a key that cannot be read leaves nothing"
tap_ok "what was built stays unsigned" cmp unsigned "built/$file"
tap_done
