# SPDX-License-Identifier: GPL-2.0-only
# offered.zsh DIR...: completes command lines with zsh, which finds completions in DIRs;
# for each line of standard input, prints the words that are offered at its end, or what
# zsh says when it has none.
setopt extended_glob
zmodload zsh/zpty || exit
here=$(mktemp -d)
trap 'rm -rf $here' EXIT
print -rl -- "fpath=(${(q)@} \$fpath)" 'PS1=' 'autoload -Uz compinit
compinit -u -D
setopt no_auto_list no_auto_menu no_beep no_list_types
bindkey "^I" complete-word
# Keeps what is offered; calls with -A, -D or -O only ask for it.
compadd()
{
	local -a offered
	if [[ ${@[1,(i)-]} != *-[[:alpha:]]#[ADO]\ * ]]; then
		builtin compadd -O offered "$@"
		print -rl -- $offered >> $here/offered
	fi
	builtin compadd "$@"
}
compprefuncs=(at_begin)
comppostfuncs=(at_end)
at_begin() { : > $here/offered; compprefuncs=(at_begin); }
at_end() { : > $here/end; comppostfuncs=(at_end); }
: > $here/end' > $here/rc

# wait_end: until the other shell has done what it was told
wait_end()
{
	local text i
	for ((i = 0; i < 3000; i++)); do
		zpty -rt shell text && continue
		[[ ! -e $here/end ]] || { rm $here/end; return; }
		sleep 0.01
	done
	print -u 2 "zsh: no answer"
	exit 1
}

export here
zpty shell zsh -f -i
zpty -w shell "source $here/rc"
wait_end
while IFS= read -r line; do
	zpty -wn shell $'\x15'"$line"$'\t'
	wait_end
	print -r -- ${(u)${(f)"$(< $here/offered)"}}
done
