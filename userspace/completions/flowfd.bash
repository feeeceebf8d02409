# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# bash completion of flowfdctl, flowfd-run, flowfd-bench and flowfd-bench-report.
# Options and benchmarks come from the programs, so that they match the installed
# version.

# _flowfd_options CURRENT PROGRAM...: the long options in the program's --help that begin
# with CURRENT; those with a value end in "="
_flowfd_options()
{
	local current=$1
	shift
	mapfile -t COMPREPLY < <(compgen -W "$("$@" --help 2> /dev/null |
		sed -nE 's/^ {2,6}(-[^ ]( [A-Z]+)?, )?(--[a-z-]+=?).*/\3/p')" \
		-- "$current")
	if [[ ${COMPREPLY[0]-} = *= ]]; then
		compopt -o nospace
	fi
}

# _flowfd_words CURRENT WORD...
_flowfd_words()
{
	local current=$1
	shift
	mapfile -t COMPREPLY < <(compgen -W "$*" -- "$current")
}

# _flowfd_value: the option whose value must be completed, if any. Readline splits
# --option=value into three words.
_flowfd_value()
{
	local previous=${COMP_WORDS[COMP_CWORD - 1]}
	if [ "${COMP_WORDS[COMP_CWORD]}" = = ]; then
		echo "$previous"
	elif [ "$previous" = = ]; then
		echo "${COMP_WORDS[COMP_CWORD - 2]}"
	else
		echo "$previous"
	fi
}

_flowfdctl()
{
	local current=${COMP_WORDS[COMP_CWORD]} word command=
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $word in
		info | list | top | balance | --prometheus) command=$word; break ;;
		esac
	done
	case $(_flowfd_value) in
	--interval | --count | --pid | --listen | -i | -n | -p | -l) return ;;
	esac
	if [[ $current = -* ]]; then
		_flowfd_options "$current" "$1" ${command:+"$command"}
	elif [ ! "$command" ]; then
		_flowfd_words "$current" info list top balance
	fi
}

_flowfd_run()
{
	local current=${COMP_WORDS[COMP_CWORD]} i
	# Words behind the program are the program's.
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			((i++))
			break ;;
		--maximum | --rate | --burst | --read-mark | --max-delay | --write-mark | \
		--overflow | --keep-eventfd | --log)
			[ "${COMP_WORDS[i + 1]}" != = ] || ((i++))
			((i++)) ;;
		-[mrbRdWokl]) ((i++)) ;;
		-*) ;;
		*) break ;;
		esac
	done
	if ((i < COMP_CWORD)); then
		if declare -F _command_offset > /dev/null; then
			_command_offset $i
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
		fi
	elif ((i > COMP_CWORD)); then
		case $(_flowfd_value) in
		--log | -l)
			mapfile -t COMPREPLY < <(compgen -f -- "${current#=}") ;;
		--overflow | -o)
			_flowfd_words "${current#=}" wait fail saturate drop ;;
		esac	# otherwise a number, or a glob
	elif [[ $current = -* ]]; then
		_flowfd_options "$current" "$1"
	else
		mapfile -t COMPREPLY < <(compgen -c -- "$current")
	fi
}

_flowfd_bench()
{
	local current=${COMP_WORDS[COMP_CWORD]}
	case $(_flowfd_value) in
	--json | --html)
		mapfile -t COMPREPLY < <(compgen -f -- "${current#=}")
		return ;;
	--rounds | --time | -r | -t) return ;;
	esac
	if [[ $current = -* ]]; then
		_flowfd_options "$current" "$1"
	else
		_flowfd_words "$current" \
			"$("$1" --list 2> /dev/null | cut -d ' ' -f 1)"
	fi
}

_flowfd_bench_report()
{
	local current=${COMP_WORDS[COMP_CWORD]}
	if [[ $current = -* ]]; then
		_flowfd_options "$current" "$1"
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	fi
}

complete -F _flowfdctl flowfdctl
complete -o filenames -F _flowfd_run flowfd-run
complete -o filenames -F _flowfd_bench flowfd-bench
complete -o filenames -F _flowfd_bench_report flowfd-bench-report
