# SPDX-License-Identifier: GPL-2.0-only
# The command "status". Sourced by flowfd-livepatch, which defines $running, say and die,
# after load.sh.
# shellcheck shell=bash disable=SC2154

boot=/boot
counts=/sys/kernel

# Prints how often the kernel has warned and oopsed since the boot.
warnings()
{
	[ -e "$counts/warn_count" ] &&
		echo $(($(cat "$counts/warn_count" "$counts/oops_count" | paste -sd +)))
}

# Prints how often since the load; fails if that is not known.
new_warnings()
{
	local now
	now=$(warnings) && [ -e "$private/warnings" ] && echo $((now - $(cat "$private/warnings")))
}

# reason_of COMMAND...: prints what the command dies of
reason_of()
{
	("$@") 2>&1 | sed 's/^flowfd-livepatch: //' || true
}

# Dies of what keeps the livepatch from being loaded now.
check_all()
{
	local dir
	dir=$(module_dir "$running")
	check_switch
	check_fit "$dir" "$dir/$file"
	check_signature "$dir/$file" "$dir/$file"
	check_crashes "$running" "$(field "$dir/$file" version)"
	check_others "$dir/$file"
	[ -z "$(our_names "$modules")" ] || die "another livepatch has replaced it, or it was" \
		"unloaded without this tool: 'flowfd-livepatch load' loads it again"
	die "not loaded: 'flowfd-livepatch load' loads it"
}

# Dies of what keeps the next boot, of KERNEL, from loading it.
check_next()
{
	local dir unit enabled=
	dir=$(module_dir "$1" fits_installed)
	fits_installed "$dir" "$1" || die "no: there is no module for it: $(how_to_get "$1")"
	for unit in service timer; do
		! systemctl -q is-enabled "flowfd-livepatch.$unit" 2> /dev/null || enabled=1
	done
	[ "$enabled" ] || die "no: 'systemctl enable flowfd-livepatch' has it loaded at boot"
	check_off_file
	check_signature "$dir/$file" "$dir/$file"
	check_crashes "$1" "$(field "$dir/$file" version)"
	echo "yes"
}

# Prints the kernel that a boot loader takes by default: the newest.
newest_kernel()
{
	local newest
	newest=$(printf '%s\n' "$boot"/vmlinuz-* | sort -V | tail -n 1)
	[ -e "$newest" ] && echo "${newest#"$boot"/vmlinuz-}" || echo "$running"
}

# state_of LIVEPATCH
state_of()
{
	if ! is_enabled "$1"; then
		echo "being unloaded"
	elif ! in_force "$1"; then
		echo "coming into force"
	elif [ "$(overridden "$1")" ]; then
		echo "in force in part"
	else
		echo "in force"
	fi
}

# json NAME TEXT: prints a member. The text has no control characters but line ends.
json()
{
	local text=${2//\\/\\\\}
	text=${text//\"/\\\"}
	printf '"%s": "%s", ' "$1" "${text//$'\n'/; }"
}

# The command; with an argument, as one flat object. Returns 0 if the livepatch is in force, 1
# during a transition or if it is in force in part, 3 if it is not in force. If two builds are
# loaded, the object is of the one that comes or goes.
status()
{
	local names name='' said="not in force" why='' dir next boots warned outdated='' result=1
	need_livepatching
	names=$(our_names "$sysfs")
	for name in $names; do
		said=$(state_of "$name")
		[ "$said" = "in force" ] || break
	done
	case $said in
	"in force") result=0 ;;
	"not in force") why=$(reason_of check_all) result=3 ;;
	"in force in part") why=$(overridden "$name") ;;
	*) why=$(blockers) ;;
	esac
	warned=$(new_warnings) || true
	dir=$(module_dir "$running")
	! [ -e "$dir/$file" ] || ! is_outdated "$dir" "$running" || outdated=1
	next=$(newest_kernel)
	boots=$(reason_of check_next "$next")
	if [ "${1-}" ]; then
		printf '{'
		json kernel "$running"
		json state "$said"
		json why "$why"
		json name "$name"
		json version "$(cat "$modules/$name/version" 2> /dev/null)"
		json module "$(field "$dir/$file" version)"
		json next_kernel "$next"
		json next_boot "$boots"
		[ "$outdated" ] && outdated=true || outdated=false
		printf '"outdated": %s, "warnings": %s}\n' $outdated "${warned:-null}"
		return $result
	fi
	[ "$names" ] || say "not in force: $why"
	for name in $names; do
		say "$(state_of "$name")"
		echo "  $name, version $(cat "$modules/$name/version" 2> /dev/null)"
		printf '  patches %s\n' "$sysfs/$name"/*/*,* | sed 's/ [^ ]*\// /'
		overridden "$name" | sed 's/\(.*\) \(.*\)/  \1 is that of \2, which came later/'
		in_force "$name" || blockers
		[ -z "$warned" ] || echo "  warnings of the kernel since the load: $warned"
	done
	[ ! -e "$dir/$file" ] || echo "module: $dir/$file, version $(field "$dir/$file" version)," \
		"fixes $(field "$dir/$file" flowfd_fixes)${outdated:+, outdated: build again}"
	echo "next boot, of $next: $boots"
	return $result
}
