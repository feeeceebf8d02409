# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# bash completion of flowfdctl, flowfd-run, flowfd-bench and flowfd-bench-report. Commands
# and options come from the programs, so that they match the installed version.

_flowfd()
{
	local words='' command=()
	if [[ $2 = -* ]]; then
		# A command of flowfdctl has options of its own.
		if [[ $1 = *flowfdctl && ${COMP_WORDS[1]} = [a-z]* ]]; then
			command=("${COMP_WORDS[1]}")
		fi
		words=$("$1" "${command[@]}" --help 2> /dev/null |
			sed -nE 's/^ {2,6}(-[^ ]( [A-Z]+)?, )?(--[a-z-]+).*/\3/p')
	elif [[ $1 = *flowfdctl && $COMP_CWORD = 1 ]]; then
		words=$("$1" --help 2> /dev/null | sed -nE 's/^  ([a-z]+)  .*/\1/p')
	elif [[ $1 = *flowfd-run && $3 = @(*flowfd-run|-*|[0-9]*) && $2 != */* ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$2")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$2")
}

# Otherwise a file.
complete -o default -F _flowfd flowfdctl flowfd-run flowfd-bench flowfd-bench-report
