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

# The command. Returns 0 if the livepatch is in force, 1 during a transition or if it is in
# force in part, 3 if it is not in force.
status()
{
	local name names dir said next result=0
	need_livepatching
	names=$(our_names "$sysfs")
	if [ -z "$names" ]; then
		say "not in force: $(reason_of check_all)"
		result=3
	fi
	for name in $names; do
		said=$(state_of "$name")
		[ "$said" = "in force" ] || result=1
		say "$said"
		echo "  $name, version $(cat "$modules/$name/version" 2> /dev/null)"
		printf '  patches %s\n' "$sysfs/$name"/*/*,* | sed 's/ [^ ]*\// /'
		overridden "$name" | sed 's/\(.*\) \(.*\)/  \1 is that of \2, which came later/'
		in_force "$name" || blockers
		! new_warnings > /dev/null || echo "  warnings of the kernel since the load:" \
			"$(new_warnings)"
	done
	dir=$(module_dir "$running")
	[ ! -e "$dir/$file" ] || echo "module: $dir/$file, version $(field "$dir/$file" version)," \
		"fixes $(field "$dir/$file" flowfd_fixes)$(! is_outdated "$dir" "$running" ||
			echo ", outdated: build again")"
	next=$(newest_kernel)
	echo "next boot, of $next: $(reason_of check_next "$next")"
	return $result
}

# json NAME TEXT: prints a member. The text has no control characters but line ends.
json()
{
	local text=${2//\\/\\\\}
	text=${text//\"/\\\"}
	printf '"%s": "%s", ' "$1" "${text//$'\n'/; }"
}

# The command: the same as one flat object.
status_json()
{
	local name='' said="not in force" why='' next outdated=false dir result=0
	need_livepatching
	for name in $(our_names "$sysfs"); do
		said=$(state_of "$name")
		[ "$said" = "in force" ] || result=1
	done
	case $said in
	"not in force") why=$(reason_of check_all) result=3 ;;
	"in force in part") why=$(overridden "$name") ;;
	"in force") ;;
	*) why=$(blockers) ;;
	esac
	next=$(newest_kernel)
	dir=$(module_dir "$running")
	! [ -e "$dir/$file" ] || ! is_outdated "$dir" "$running" || outdated=true
	printf '{'
	json kernel "$running"
	json state "$said"
	json why "$why"
	json name "$name"
	json version "$(cat "$modules/$name/version" 2> /dev/null)"
	json module "$(field "$dir/$file" version)"
	json next_kernel "$next"
	json next_boot "$(reason_of check_next "$next")"
	printf '"outdated": %s, "warnings": %s}\n' $outdated "$(new_warnings || echo null)"
	return $result
}
