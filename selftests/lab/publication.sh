# SPDX-License-Identifier: GPL-2.0-only
# What is made must follow what was made, and perhaps published, before it. To be sourced,
# after lib.sh. COMMAND of who does is in 'privileged', and what is made is of a 'version'.
# shellcheck shell=bash disable=SC2154

# begin DIR...: one at a time makes these. The lock is of what is there: what makes DIR may be
# root, and this somebody else; and not of a file, as git replaces these. Where the last time
# ended within in_place, DIR is again what it was, unless it is the new one already.
begin()
{
	local dir
	exec 9< .
	flock 9
	for dir; do
		if [ -e "$dir" ]; then
			"${privileged[@]}" rm -rf "$dir.old"
		elif [ -e "$dir.old" ]; then
			"${privileged[@]}" mv -T "$dir.old" "$dir"
		fi
	done
}

# in_place DIR: DIR.new is DIR now. What DIR was goes last, as it may be the only copy.
in_place()
{
	if [ -e "$1" ]; then
		"${privileged[@]}" rm -rf "$1.old"
		"${privileged[@]}" mv -T "$1" "$1.old"
	fi
	"${privileged[@]}" mv -T "$1.new" "$1"
	"${privileged[@]}" rm -rf "$1.old"
}

# never_built REPOSITORY...: none has this version, perhaps with other contents, which users
# have the hashes of
never_built()
{
	local repository
	for repository; do
		[ ! "$(find "$repository" -name "flowfd*_$version+deb*" -print -quit 2> /dev/null)" ] ||
			die "$repository has $version already; FROM=$repository publishes that again"
	done
}

# has_before REPOSITORY: what was released before it is there, or nobody uses that. Without it
# nothing shows whether users can go on.
has_before()
{
	local tags
	if [ -e "$1" ] || [ "${FIRST-}" ] || [ ! -e .git ]; then
		return
	fi
	tags=$(git tag -l 'v[0-9]*' | xargs)
	[ ! "$tags" ] ||
		die "there are the tags $tags, but no $1: copy what was published last to there," \
			"or say FIRST=1 if nobody uses it"
}

# date_of REPOSITORY: of the newest of its suites, in seconds; 0 if there is none
date_of()
{
	local dates
	dates=$(sed -n 's/^Date: //p' "$1"/dists/*/InRelease 2> /dev/null) || true
	date -f - +%s <<< "${dates:-@0}" | sort -n | tail -n 1
}

# release_time: that of the newest entry of debian/changelog, in seconds
release_time()
{
	local time
	time=$(sed -n '/^ -- /{s/.*>  //p;q}' debian/changelog)
	[ "$time" ] || die "the newest entry of debian/changelog has no time"
	date +%s -d "$time"
}

# later_than REPOSITORY TIME: a release of that time is. Of two, apt keeps the later one, and
# says nothing.
later_than()
{
	local before
	before=$(date_of "$1")
	[ "$2" -gt "$before" ] ||
		die "debian/changelog must have a time after that of $1, $(date -Rud "@$before")"
}

# highest REPOSITORY: the highest version that was released: of those that are in there, also of
# before, as on the web server, and of the tags
highest()
{
	{
		[ ! -e "$1/pool" ] || find "$1/pool" -name 'flowfd-archive-keyring_*' |
			sed 's/.*_\(.*\)+.*/\1/'
		[ ! -e .git ] || git tag -l 'v[0-9]*' | sed 's/^v//'
	} | sort -V | tail -n 1
}

# higher_than REPOSITORY: this version is, so that apt upgrades to it
higher_than()
{
	local before
	before=$(highest "$1")
	dpkg --compare-versions "$version" gt "$before" ||
		die "$version is not a higher version than $before, which was released"
}

# keeps REPOSITORY: what is made has all of its suites and architectures
keeps()
{
	local dir suite architecture
	for dir in "$1"/dists/*/main/binary-*; do
		[ -e "$dir" ] || continue
		architecture=${dir##*-}
		suite=${dir%/main/*}
		suite=${suite##*/}
		if [ "${FROM-}" ]; then
			[ -e "$FROM/${dir#"$1"}" ]
		else
			[[ " ${SUITES:-$suite} " = *" $suite "* &&
				" ${ARCHITECTURES:-$architecture} " = *" $architecture "* ]]
		fi || die "$1 has $suite for $architecture: its users would lose the packages;" \
			"remove it if nobody uses it"
	done
}

# public_key KEY: prints the fingerprint of the one public key that KEY names, if apt accepts what
# it signs
public_key()
{
	local listed fingerprint
	listed=$(gpg --batch --with-colons --list-keys -- "$1") || die "gpg has no key '$1'"
	[ "$(grep -c '^pub:' <<< "$listed")" = 1 ] ||
		die "'$1' names several keys; name one by its fingerprint"
	! grep -q '^pub:[er]:' <<< "$listed" || die "the key '$1' has expired, or was revoked"
	fingerprint=$(awk -F: '$1 == "fpr" { print $10; exit }' <<< "$listed")
	debian/accepted-key "$fingerprint"
	echo "$fingerprint"
}

# use_keys KEY: sets key and signer, which signs for it, and exported, which has KEYS, too; all
# are fingerprints. A name may be that of other keys, too, which anybody may have made; and what
# signs is "$signer!", as gpg would take the newest subkey of key.
use_keys()
{
	local found name
	found=$(debian/signing-key "$1")
	read -r key signer _ <<< "$found"
	exported=("$key")
	for name in ${KEYS-}; do
		found=$(public_key "$name")
		exported+=("$found")
	done
}

# users_have_key KEYRING...: what signs now is in each of these packages, which users have
users_have_key()
{
	local keyring keys
	for keyring; do
		keys=$("${privileged[@]}" "$lab/enter" 6.1 dpkg-deb --fsys-tarfile "$keyring" |
			tar -xO ./usr/share/keyrings/flowfd-archive-keyring.gpg |
			gpg --batch --with-colons --show-keys)
		grep -q "^fpr:.*:$signer:" <<< "$keys" ||
			die "users do not have the key that signs, $signer: first publish it with KEYS=," \
				"or, if it is a new subkey, sign with the one that they have, KEY=FINGERPRINT!"
	done
}

# signed_before REPOSITORY: what signed it is one of KEY and KEYS. Who has the keyring that is
# made now may get that repository once more.
signed_before()
{
	local release signed
	for release in "$1"/dists/*/InRelease; do
		signed=$(gpg --batch --status-fd 1 --verify "$release" 2> /dev/null |
			awk '$2 == "VALIDSIG" { print $NF }') || true
		[[ " ${exported[*]} " = *" ${signed:-none} "* ]] ||
			die "$release is not signed by one of KEY and KEYS"
	done
}

# follows REPOSITORY TIME: this version, of that time and signed by these keys, can be
# published after it
follows()
{
	never_built "$1" build/release/repository
	has_before "$1"
	higher_than "$1"
	# apt would take nothing of it.
	[ "$2" -le "$(date +%s)" ] ||
		die "debian/changelog has a time to come, $(date -Rud "@$2")"
	later_than "$1" "$2"
	[ -e "$1" ] || return 0
	keeps "$1"
	# In pool/ there may be those of before, as on the web server.
	users_have_key "$1/flowfd-archive-keyring.deb"
	signed_before "$1"
}
