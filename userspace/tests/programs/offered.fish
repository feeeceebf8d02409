# SPDX-License-Identifier: GPL-2.0-only
# offered.fish DIR: completes command lines with fish, which finds completions in DIR; for
# each line of standard input, prints the words that are offered at its end.
set -p fish_complete_path $argv[1]
while read -l line
    echo (complete -C $line | string replace -r '\t.*' '')
end
