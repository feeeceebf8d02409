# SPDX-License-Identifier: GPL-2.0-only
# fish completion of flowfdctl, flowfd-run, flowfd-bench and flowfd-bench-report; fish loads
# it by each of these names. Commands, options and benchmarks come from the programs, so
# that they match the installed version.

# __flowfd_help PROGRAM [COMMAND]: its help, without line breaks in descriptions
function __flowfd_help
    env ARGP_HELP_FMT=rmargin=9999 COLUMNS=9999 $argv --help 2>/dev/null
end

# __flowfd_commands PROGRAM: commands and their descriptions
function __flowfd_commands
    __flowfd_help $argv | string replace -rf '^  ([a-z]+) {2,}(\S.*)$' '$1\t$2'
end

# __flowfd_options CONDITION PROGRAM [COMMAND]: offers its options where the condition
# holds
function __flowfd_options
    set -l condition $argv[1]
    set -l lines (__flowfd_help $argv[2..])
    for i in (seq (count $lines))
        set -l found (string replace -rf '^ {2,6}(?:-(.)(?: [A-Z]+)?, )?--([a-z-]+)(?:[= ]([A-Z]+))?(?: +(.*))?$' '$1\t$2\t$3\t$4' -- $lines[$i] | string split \t)
        or continue
        set -l option -c $argv[2] -n $condition -l $found[2]
        string match -qr '[a-zA-Z]' -- $found[1]; and set -a option -s $found[1]
        # Where the option is too long, the description is on the next line.
        set -l text $found[4]
        test -n "$text"; or set text (string trim -- $lines[$(math $i + 1)])
        switch $found[3]
            case ''
            case FILE OUTPUT RESULT
                set -a option -r -F
            case POLICY
                set -a option -x -a 'wait fail saturate drop'
            case SUBJECT
                set -a option -x -a 'eventfd flowfd'
            case '*'
                set -a option -x
        end
        complete $option -d (string replace -r '[;:].*' '' -- $text)
    end
end

# __flowfd_valued PROGRAM: its options that take a value
function __flowfd_valued
    __flowfd_help $argv | string replace -rf '^ {2,6}(?:(-[a-zA-Z]), )?(--[a-z-]+)=.*' '$1 $2' | string split -n ' '
end

# The words from the program that flowfd-run runs, before the one to complete.
function __flowfd_run_words
    set -l valued (__flowfd_valued flowfd-run)
    set -l words (commandline -opc)[2..]
    set -l i 1
    while test $i -le (count $words)
        if test $words[$i] = --
            set i (math $i + 1)
            break
        else if contains -- $words[$i] $valued
            set i (math $i + 1)
        else if not string match -q -- '-*' $words[$i]
            break
        end
        set i (math $i + 1)
    end
    string escape -- $words[$i..]
end

# The program and its arguments, as fish completes them without flowfd-run.
function __flowfd_run_program
    set -l words (__flowfd_run_words)
    set -l current (commandline -ct)
    test -n "$words"; or not string match -q -- '-*' $current; or return
    complete -C "$(string join -- ' ' $words $current)"
end

function __flowfd_benchmarks
    flowfd-bench --list 2>/dev/null | string replace -r ' .*' ''
end

switch (string replace -r '.*/' '' -- (status filename))
    case flowfdctl.fish
        set -l commands (__flowfd_commands flowfdctl | string replace -r '\t.*' '')
        complete -c flowfdctl -f
        complete -c flowfdctl -n "not __fish_seen_subcommand_from $commands" \
            -a '(__flowfd_commands flowfdctl)'
        __flowfd_options "not __fish_seen_subcommand_from $commands" flowfdctl
        for command in $commands
            __flowfd_options "__fish_seen_subcommand_from $command" flowfdctl $command
        end
    case flowfd-run.fish
        complete -c flowfd-run -x -a '(__flowfd_run_program)'
        __flowfd_options 'test -z "$(__flowfd_run_words)"' flowfd-run
    case flowfd-bench.fish
        complete -c flowfd-bench -f -a '(__flowfd_benchmarks)'
        __flowfd_options true flowfd-bench
    case flowfd-bench-report.fish
        __flowfd_options true flowfd-bench-report
end
