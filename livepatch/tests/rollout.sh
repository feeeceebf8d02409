#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# rollout.sh: the playbook of livepatch/examples on five pretended hosts in stages of 1, 2
# and 2. Commands of a host run with its directory in HOST_DIR. Prints TAP.
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
playbook=$PWD/livepatch/examples/rollout.yml
cd "$(mktemp -d)" || exit
export ANSIBLE_RETRY_FILES_ENABLED=0 ANSIBLE_LOCAL_TEMP=$PWD/tmp ANSIBLE_HOME=$PWD/home
mkdir bin
cat > bin/fake <<'TEXT'
#!/bin/sh
echo "${0##*/} $*" >> "$HOST_DIR/said"
[ "$*" != load ] || [ ! -e "$HOST_DIR/ill" ]
TEXT
printf '#!/bin/sh\n[ ! -e "$HOST_DIR/warned" ] || echo $$\n/bin/uname "$@"\n' > bin/uname
chmod +x bin/*
ln -s fake bin/flowfd-livepatch
ln -s fake bin/systemctl
for host in a1 b1 b2 c1 c2; do
	mkdir $host
	printf '#!/bin/sh\nexport HOST_DIR=%s PATH=%s/bin:$PATH\nexec /bin/sh "$@"\n' \
		"$PWD/$host" "$PWD" > $host/sh
	chmod +x $host/sh
	echo "$host ansible_connection=local ansible_shell_executable=$PWD/$host/sh"
done > hosts

# rollout: prints what each host was told; its log is in the file output
rollout()
{
	rm -f ./*/said
	ansible-playbook -i hosts -e '{"flowfd_stages": [1, 2, 2], "flowfd_apt":
		"{{ (inventory_hostname ~ \"/no_archive\") is exists and no_archive }}",
		"flowfd_become": false, "flowfd_watch": 1, "ansible_python_interpreter":
		"/usr/bin/python3"}' "$playbook" > output 2>&1
	echo "status $?"
	for host in ??; do
		echo "$host:" "$(sed 's/flowfd-livepatch //; s/systemctl enable/enable/' \
			"$host/said" 2> /dev/null | xargs)"
	done | sed 's/ $//'
}

enabled="load enable flowfd-livepatch"
tap_is "$(rollout)" "status 0
a1: $enabled
b1: $enabled
b2: $enabled
c1: $enabled
c2: $enabled" "hosts that are well"
touch b1/ill
tap_is "$(rollout)" "status 2
a1: $enabled
b1: load
b2: $enabled
c1:
c2:" "a load that fails: what was loaded stays, the stage ends, the next does not begin"
tap_ok "the log says so" grep -q "'Load' failed" output
mv b1/ill b1/no_archive
tap_is "$(rollout)" "status 2
a1: $enabled
b1:
b2: $enabled
c1:
c2:" "packages that cannot be installed: likewise"
rm b1/no_archive
# As if the kernel were another than before at each look.
touch a1/warned
tap_is "$(rollout)" "status 2
a1: load unload
b1:
b2:
c1:
c2:" "a kernel that is not as before"
tap_done
