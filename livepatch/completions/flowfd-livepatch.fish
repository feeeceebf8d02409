# SPDX-License-Identifier: GPL-2.0-only
# fish completion of flowfd-livepatch. Commands and their options come from its help, so
# that they match the installed version.

complete -c flowfd-livepatch -f
for line in (flowfd-livepatch --help 2>/dev/null)
    set -l name (string match -rg '^  ([a-z]+) ' -- $line)
    or continue
    set -l text (string match -rg '\S {2,}(\S.*)$' -- $line; or echo)
    complete -c flowfd-livepatch -n __fish_use_subcommand -a $name -d "$text"
    for found in (string match -ra -- '\[--[a-z-]+ ?[A-Z]*' $line)
        set -l option (string match -rg -- '--([a-z-]+)' $found)
        set -l value
        switch $found
            case '* VERSION'
                set value -x -a '(command ls /lib/modules 2>/dev/null)'
            case '* DIR'
                set value -x -a '(__fish_complete_directories)'
            case '* KEY'
                set value -r -F
        end
        complete -c flowfd-livepatch -n "__fish_seen_subcommand_from $name" \
            -l $option $value
    end
end
