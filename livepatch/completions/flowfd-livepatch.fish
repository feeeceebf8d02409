# SPDX-License-Identifier: GPL-2.0-only
# fish completion of flowfd-livepatch. Commands and their options come from its help, so
# that they match the installed version.

complete -c flowfd-livepatch -f
for line in (flowfd-livepatch --help 2>/dev/null)
    set -l found (string replace -rf '^  ([a-z]+)(?: \[--([a-z-]+) ?([A-Z]*)\])? {2,}(\S.*)$' '$1\t$2\t$3\t$4' -- $line | string split \t)
    or continue
    complete -c flowfd-livepatch -n __fish_use_subcommand -a $found[1] -d $found[4]
    switch $found[3]
        case VERSION
            complete -c flowfd-livepatch -n "__fish_seen_subcommand_from $found[1]" -x \
                -l $found[2] -a '(command ls /lib/modules 2>/dev/null)'
        case '*'
            test -z $found[2]
            or complete -c flowfd-livepatch -l $found[2] \
                -n "__fish_seen_subcommand_from $found[1]"
    end
end
