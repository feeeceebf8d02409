#compdef flowfdctl flowfd-run flowfd-bench flowfd-bench-report
# SPDX-License-Identifier: GPL-2.0-only
# zsh completion of flowfdctl, flowfd-run, flowfd-bench and flowfd-bench-report. Commands,
# options and benchmarks come from the programs, so that they match the installed version.

# _flowfd_help PROGRAM [COMMAND]: sets lines to its help, without line breaks in
# descriptions
_flowfd_help()
{
	lines=("${(@f)$(_call_program options \
		env ARGP_HELP_FMT=rmargin=9999 COLUMNS=9999 "$@" --help 2> /dev/null)}")
}

# _flowfd_commands PROGRAM: sets commands_found, for _describe
_flowfd_commands()
{
	local -a lines match
	local line
	_flowfd_help "$1"
	commands_found=()
	for line in $lines; do
		[[ $line =~ '^  ([a-z]+) {2,}([^ ].*)$' ]] &&
			commands_found+=("$match[1]:${match[2]//:/ }")
	done
}

# _flowfd_action VALUE: sets action to what completes a value that the help calls so
_flowfd_action()
{
	case $1 in
	FILE | OUTPUT | RESULT) action=_files ;;
	POLICY) action='(wait fail saturate drop)' ;;
	SUBJECT) action='(eventfd flowfd)' ;;
	*) action=' ' ;;	# nothing to offer: zsh shows the name of the value
	esac
}

# _flowfd_options PROGRAM [COMMAND]: sets specs, for _arguments
_flowfd_options()
{
	local -a lines match
	local i short long value text prefix action
	_flowfd_help "$@"
	specs=()
	for ((i = 1; i <= $#lines; i++)); do
		[[ $lines[i] =~ '^ {2,6}(-([^ ,])( [A-Z]+)?, )?(--[a-z-]+)([= ]([A-Z]+))?( +(.*))?$' ]] ||
			continue
		short=-$match[2] long=$match[4] value=$match[6]
		# Where the option is too long, the description is on the next line.
		text=${match[8]:-${lines[i + 1]## #}}
		prefix="($short $long)"
		[[ $text != *'may be repeated'* ]] || prefix='*'
		text=${${text%%[;:\[]*}//\]/}
		_flowfd_action "$value"
		if [[ $short = -[a-zA-Z] ]]; then
			specs+=("$prefix$short${value:++}[$text]${value:+:$value:$action}")
		fi
		specs+=("$prefix$long${value:+=}[$text]${value:+:$value:$action}")
	done
}

_flowfdctl()
{
	local program=$words[1] context state line
	local -a specs commands_found
	local -A opt_args
	_flowfd_options $program
	_arguments -C $specs '1: :->command' '*:: :->arguments'
	case $state in
	command)
		_flowfd_commands $program
		_describe command commands_found ;;
	arguments)
		_flowfd_options $program $words[1]
		_arguments $specs ;;
	esac
}

_flowfd_run()
{
	local -a specs
	_flowfd_options $words[1]
	# Words behind the program are the program's.
	_arguments -S $specs '(-)1:program:_command_names -e' '*:: :_normal'
}

_flowfd_bench()
{
	local -a specs benchmarks
	_flowfd_options $words[1]
	benchmarks=(${${(f)"$(_call_program benchmarks $words[1] --list 2> /dev/null)"}%% *})
	_arguments $specs '*:benchmark:($benchmarks)'
}

_flowfd_bench_report()
{
	local -a specs
	_flowfd_options $words[1]
	_arguments $specs '1:result:_files'
}

case $service in
flowfdctl) _flowfdctl "$@" ;;
flowfd-run) _flowfd_run "$@" ;;
flowfd-bench) _flowfd_bench "$@" ;;
flowfd-bench-report) _flowfd_bench_report "$@" ;;
esac
