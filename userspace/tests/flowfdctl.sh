#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# flowfdctl without the module: its messages, and the arguments that it refuses.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

ctl=$build/flowfdctl

# refused WHAT TEXT ARGUMENT...: exit status 64, and the first line is TEXT
refused() {
	what=$1
	text=$2
	shift 2
	output=$("$ctl" "$@" 2>&1)
	tap_is "$?: $(echo "$output" | head -n 1)" "64: $text" "$what"
}

interval="not a number from 0.1 to 86400"
neither="neither an option nor the value of one"

refused "no command" "flowfdctl: no command (info, list, balance)"
refused "unknown command" "flowfdctl: lst: no such command (info, list, balance)" \
	lst
refused "an empty command" "flowfdctl: : no such command (info, list, balance)" ""
refused "unknown option" "flowfdctl: unrecognized option '--all'" --all
refused "a command's option before it" \
	"flowfdctl: unrecognized option '--json'" --json list
refused "unknown option of a command" \
	"flowfdctl list: unrecognized option '--all'" list --all
refused "another command's option" \
	"flowfdctl info: unrecognized option '--json'" info --json
refused "an argument of list" "flowfdctl list: 12: $neither" list 12
refused "an argument of info" "flowfdctl info: x: $neither" info x
refused "an argument of balance" "flowfdctl balance: 5: $neither" balance 5
for value in 0 0.09 86400.1 -1 1s "" 0x1 nan inf 1e2 . 1.2.3; do
	refused "interval '$value'" \
		"flowfdctl balance: --interval '$value': $interval" \
		balance --interval="$value"
done
refused "an argument of --prometheus" \
	"flowfdctl --prometheus: list: $neither" --prometheus list
refused "an option of a command before it" \
	"flowfdctl list: unrecognized option '--prometheus'" list --prometheus
refused "option without its value" \
	"flowfdctl list: option '--pid' requires an argument" list --pid

# The collector's file is replaced only by what is complete, or as far as possible,
# whatever its user makes of the directory.
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
sed -n '/^mkdir .*flowfdctl/,/^\.EE/p' "${0%/*}/../man/flowfdctl.1" |
	sed -e '/^\./d' -e 's/\\-/-/g' >"$here/flowfdctl(1)"
"$ctl" --prometheus --help | sed -n 's/^  \(.*mkdir\)/\1/; /^mkdir/,/^ *esac/p' \
	>"$here/--help"
sed -i "s|/var/lib/|$here/|g" "$here/flowfdctl(1)" "$here/--help"
exporter=$here/prometheus/node-exporter
mkdir -p "$here/bin" "$exporter/directory"
for example in "flowfdctl(1)" --help; do
	for end in "exit 0" "exit 2" "exit 1" "exit 64" "exit 127" "kill -TERM \$\$" \
		"kill -KILL \$\$"; do
		case $end in "exit 0" | "exit 2") wanted=new ;; *) wanted=old ;; esac
		printf '#!/bin/sh\necho new\n%s\n' "$end" >"$here/bin/flowfdctl"
		chmod +x "$here/bin/flowfdctl"
		echo old >"$exporter/flowfd.prom"
		PATH=$here/bin:$PATH sh "$here/$example" 2>/dev/null
		tap_is "$(cat "$exporter/flowfd.prom")" "$wanted" \
			"example of $example: $end"
	done
	printf '#!/bin/sh\necho new\n' >"$here/bin/flowfdctl"
	echo own >"$here/file"
	for name in new flowfd.new flowfd.prom; do
		ln -sf "$here/file" "$exporter/$name"
	done
	PATH=$here/bin:$PATH sh "$here/$example"
	tap_is "$(cat "$here/file" "$exporter/flowfd.prom")" "own
new" "example of $example: links to a file"
	ln -sfn directory "$exporter/flowfd.prom"
	PATH=$here/bin:$PATH sh "$here/$example"
	tap_is "$(ls "$exporter/directory")$(cat "$exporter/flowfd.prom")" new \
		"example of $example: a link to a directory"
done

for value in 0 -1 1x "" 2147483648 self 0x1; do
	refused "process '$value'" "flowfdctl list: --pid '$value': not the number of a process" \
		list --pid="$value"
done
tap_is "$("$ctl" help)" "$("$ctl" --help)" "help is --help"
for words in --help --version help "list --help" "balance --usage"; do
	# shellcheck disable=SC2086 # separate words
	tap_is "$("$ctl" $words 2>&1 >/dev/full; echo "status $?")" \
		"flowfdctl: standard output: No space left on device
status 1" "$words that cannot be written"
done

version=$(sed -n 's/^Version: //p' "$build/libflowfd.pc")
for command in "" info list balance --prometheus; do
	# shellcheck disable=SC2086 # no command is no argument
	tap_is "$("$ctl" $command --version)" "flowfdctl $version" \
		"version${command:+ of $command}"
	# shellcheck disable=SC2086
	tap_ok "help${command:+ of $command}" "$ctl" $command --help
done

tap_is "$("$ctl" list --pid 2147483647 2>&1)" "flowfdctl: there is no process 2147483647" \
	"no such process"
tap_is "$("$ctl" list --pid $$)" "$(printf '%s\n' \
	"COUNTER  PID  FD  COUNT  MAXIMUM  RATE  BURST  DEFERRED  TYPE  COMMAND" "" \
	"RING  PID  FD  WATCHES  POSTS  MAX  HEAD  TAIL  PENDING  COMMAND")" \
	"a process without counters"
setpriv --reuid 65534 --clear-groups sleep 100 &
other=$!
if setpriv --reuid 65534 --clear-groups true 2>/dev/null; then
	output=$(setpriv --reuid 65533 --clear-groups "$ctl" list --pid $other 2>&1)
	tap_is "$?: $output" "1: flowfdctl: this user may not inspect process $other: that \
needs root, or the permission to trace it (ptrace(2))" "another user's process"
fi
kill $other

if [ -e /dev/flowfd ] || [ -e /sys/module/flowfd ]; then
	tap_skip_all "flowfdctl without the module" "the module is loaded"
fi
missing="flowfdctl: the flowfd module is not loaded: run 'modprobe flowfd' as \
root (package flowfd-dkms)"
tap_is "$("$ctl" info 2>&1)" \
"libflowfd        $version
fallback         programs that allow it run without the module:
                 counters in memory, also shared, without bucket, read and write
                 rings on epoll: events come with a wait, and a file that is
                   closed before it is removed can have one more
$missing" "info says what there is without it"
for command in list "list --json" "list --flow --stats" \
	--prometheus; do
	# shellcheck disable=SC2086 # words
	output=$("$ctl" $command 2>&1)
	tap_is "$? $output" "1 $missing" "$command says that it is missing"
done
"$ctl" info >/dev/null 2>&1
tap_is $? 1 "exit status of info"
tap_done
