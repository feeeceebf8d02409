#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# flowfd-run without the module: its messages, the options that it refuses, and that
# the program runs as if called directly.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

run=$build/flowfd-run
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# refused WHAT TEXT OPTION...: exit status 125, and the first line is TEXT
refused() {
	what=$1
	text=$2
	shift 2
	output=$("$run" "$@" 2>&1)
	tap_is "$?: $(echo "$output" | head -n 1)" "125: flowfd-run: $text" \
		"$what"
}

maximum="not a number from 2 to 18446744073709551615"
rate="not a number from 1 to 1000000000"
burst="not a number from 1 to 4294967295"
which="not N or N-M with 1 <= N <= M"

refused "no program" "no program to run"
refused "no program after options" "no program to run" --maximum 10
refused "maximum 0" "--maximum '0': $maximum" --maximum 0 true
refused "maximum 1" "--maximum '1': $maximum" --maximum=1 true
refused "maximum with junk" "--maximum '10x': $maximum" --maximum 10x true
refused "maximum empty" "--maximum '': $maximum" --maximum "" true
refused "maximum negative" "--maximum '-1': $maximum" --maximum=-1 true
refused "maximum too high" "--maximum '18446744073709551616': $maximum" \
	--maximum 18446744073709551616 true
refused "rate 0" "--rate '0': $rate" --rate 0 --burst 1 true
refused "rate too high" "--rate '1000000001': $rate" \
	--rate 1000000001 --burst 1 true
refused "rate with junk" "--rate '1k': $rate" --rate 1k --burst 1 true
refused "burst 0" "--burst '0': $burst" --rate 1 --burst 0 true
refused "burst too high" "--burst '4294967296': $burst" \
	--rate 1 --burst 4294967296 true
refused "rate alone" "--rate, --burst: a rate needs a burst" --rate 5 true
refused "burst alone" "--rate, --burst: a burst needs a rate" --burst 5 true
mark="not a number from 2 to 18446744073709551614"
delay="not a time from 1ns to 3600s, in ns, us, ms or s"
policy="not wait, fail, saturate or drop"
refused "read mark 0" "--read-mark '0': $mark" --read-mark 0 --max-delay 1ms true
refused "read mark 1" "--read-mark '1': $mark" --read-mark 1 --max-delay 1ms true
refused "read mark with junk" "--read-mark '6k': $mark" -R 6k -d 1ms true
refused "read mark alone" "--read-mark: needs --max-delay" --read-mark 64 true
refused "read mark at the maximum" "--read-mark: not below the maximum" \
	--read-mark 64 --max-delay 1ms --maximum 64 true
refused "delay alone" "--max-delay: needs --read-mark" --max-delay 1ms true
refused "delay without a unit" "--max-delay '2': $delay" -R 64 --max-delay 2 true
refused "delay 0" "--max-delay '0s': $delay" -R 64 --max-delay 0s true
refused "delay too long" "--max-delay '2h': $delay" -R 64 --max-delay 2h true
refused "write mark 0" "--write-mark '0': $mark" -m 10 --write-mark 0 true
refused "write mark 1" "--write-mark '1': $mark" -m 10 --write-mark 1 true
refused "write mark alone" "--write-mark: needs --maximum" --write-mark 5 true
refused "write mark at the maximum" "--write-mark: not below the maximum" \
	--write-mark 10 --maximum 10 true
refused "unknown policy" "--overflow 'lose': $policy" -m 10 --overflow lose true
refused "policy alone" "--overflow: needs --maximum" --overflow drop true
refused "keep nothing" "--keep-eventfd '': empty" --keep-eventfd "" true
refused "keep a path" \
	"--keep-eventfd 'a/b': a file's base name contains no slash" \
	--keep-eventfd a/b true
refused "keep a bad range" "--keep-eventfd '3-2': $which" \
	--keep-eventfd 3-2 true
refused "keep number 0" "--keep-eventfd '0': $which" --keep-eventfd 0 true
output=$("$run" --no-such-option true 2>&1)
tap_is "$?" 125 "unknown option"
output=$("$run" --maximum 2>&1)
tap_is "$?" 125 "option without its value"

tap_is "$("$run" --version)" "flowfd-run $(sed -n 's/^Version: //p' \
	"$build/libflowfd.pc")" "version"
tap_ok "help" "$run" --help
tap_is "$("$run" --help 2>&1 >/dev/full; echo "status $?")" \
	"flowfd-run: standard output: No space left on device
status 125" "help that cannot be written"

[ ! -e /dev/flowfd ] ||
	tap_skip_all "flowfd-run without the module" "the module is loaded"

# Prints the arguments of a program, and the variables that flowfd-run sets.
cat >"$here/show" <<'END'
#!/bin/sh
printf '<%s>' "$@"
echo " ${LD_PRELOAD-unset} ${FLOWFD_RUN_SETTINGS-unset}"
END
chmod +x "$here/show"
warning="the flowfd module is not loaded: run 'modprobe flowfd' as root \
(package flowfd-dkms)"

output=$("$run" --maximum 10 true 2>&1)
tap_is "$?: $output" \
	"0: flowfd-run: true runs without flow control: $warning" "one warning"
tap_is "$("$run" --maximum 10 "$here/show" 2>/dev/null)" \
	"<> unset unset" "nothing is preloaded"
tap_is "$(LD_PRELOAD=libdl.so.2 "$run" "$here/show" 2>/dev/null)" \
	"<> libdl.so.2 unset" "the user's LD_PRELOAD stays"
tap_is "$(FLOWFD_RUN_SETTINGS=maximum=10 "$run" "$here/show" 2>/dev/null)" \
	"<> unset unset" "settings of a flowfd-run around it do not"
tap_is "$(ASAN_OPTIONS=a=1 "$run" sh -c 'echo $ASAN_OPTIONS' 2>/dev/null)" a=1 \
	"nor any other variable is changed"
tap_is "$("$run" -- "$here/show" "a  b" '*' "" --verbose -- "'" 2>/dev/null)" \
	"<a  b><*><><--verbose><--><'> unset unset" "arguments stay as they are"
tap_is "$("$run" "$here/show" --help --rate 2>/dev/null)" \
	"<--help><--rate> unset unset" "options end at the program"

"$run" sh -c 'exit 42' 2>/dev/null
tap_is $? 42 "the program's exit status"
# shellcheck disable=SC2016 # the inner shell expands it
"$run" sh -c 'kill -TERM $$' 2>/dev/null
tap_is $? 143 "the program's signal"
# shellcheck disable=SC2016 # the inner shell expands it
tap_is "$(sh -c 'echo $$; exec "$1" sh -c "echo \$\$"' sh "$run" 2>/dev/null |
	uniq | wc -l)" 1 "the program replaces flowfd-run"
output=$("$run" "$here/none" 2>&1)
tap_is "$?: $(echo "$output" | tail -n 1)" \
	"127: flowfd-run: $here/none: No such file or directory" \
	"program not found"
touch "$here/plain"
output=$("$run" "$here/plain" 2>&1)
tap_is "$?: $(echo "$output" | tail -n 1)" \
	"126: flowfd-run: $here/plain: Permission denied" \
	"program that cannot be run"
tap_done
