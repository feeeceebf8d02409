// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters and rings that are opened by a key: a number, by which the list of all finds
 * the object, and a secret. The key holds no reference. The object leaves the list when
 * its file is released, so a file that is found there has its memory, but perhaps no
 * reference any more; then it stays closed. docs/sharing.md has the reasons.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "abi.h"
#include "compat.h"
#include "objects.h"
#include "share.h"

static_assert(sizeof(struct flowfd_share) == FLOWFD_SHARE_SIZE_VER0);
static_assert(sizeof(struct flowfd_key) == 3 * sizeof(u64));

/**
 * struct flowfd_shared - how others open a counter or ring
 * @file: its file; not a reference
 * @key: what they must know
 */
struct flowfd_shared {
	struct file *file;
	struct flowfd_key key;
};

static int share_args(struct flowfd_share *args, u32 flags, const void __user *argp,
		      size_t size)
{
	int err;

	err = flowfd_copy_args(args, sizeof(*args), FLOWFD_SHARE_SIZE_VER0, argp, size);
	if (err)
		return err;
	return args->flags & ~flags || args->reserved ? -EINVAL : 0;
}

/* Of two tasks that make a key at the same time, both get that of the first. */
static int share_make_key(struct flowfd_object *o, struct file *file, u64 id)
{
	struct flowfd_shared *shared;
	int err;

	if (READ_ONCE(o->shared))
		return 0;
	shared = kmalloc(sizeof(*shared), GFP_KERNEL_ACCOUNT);
	if (!shared)
		return -ENOMEM;
	shared->file = file;
	shared->key.id = id;
	/* Waits at boot, for the first random numbers that cannot be guessed. */
	err = get_random_bytes_wait(shared->key.secret, sizeof(shared->key.secret));
	if (err || cmpxchg(&o->shared, NULL, shared))
		kfree_sensitive(shared);
	return err;
}

/* FLOWFD_IOC_SHARE of a file. @id: position in the list of all. */
long flowfd_share(struct flowfd_object *o, struct file *file, u64 id, void __user *argp,
		  size_t size)
{
	struct flowfd_share args;
	int err = share_args(&args, 0, argp, size);

	if (!err)
		err = share_make_key(o, file, id);
	if (err)
		return err;
	args.key = READ_ONCE(o->shared)->key;
	return flowfd_copy_answer(argp, size, &args, sizeof(args));
}

/* In constant time. crypto_memneq() is not in every kernel. */
static bool share_is_key(const struct flowfd_key *key, const struct flowfd_key *other)
{
	const u64 *a = (const u64 *)key, *b = (const u64 *)other;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]));
}

/* A new reference, or NULL; under the lock of the array that has the object. */
static struct file *share_get_file(const struct flowfd_object *o,
				   const struct flowfd_key *key)
{
	struct flowfd_shared *shared = o ? READ_ONCE(o->shared) : NULL;

	if (!shared || !share_is_key(&shared->key, key))
		return NULL;
	if (shared->file->f_cred->user_ns != current_user_ns())
		return NULL;
	return get_file_active(&shared->file);
}

static struct file *share_find(const struct flowfd_key *key)
{
	bool is_ring = key->id >= FLOWFD_FIRST_RING;
	struct xarray *objects = is_ring ? &flowfd_rings : &flowfd_counters;
	u64 index = is_ring ? key->id - FLOWFD_FIRST_RING : key->id;
	struct file *file;

	xa_lock(objects);
	file = share_get_file(xa_load(objects, index), key);
	xa_unlock(objects);
	return file;
}

/* FLOWFD_IOC_OPEN. Returns a descriptor or a negative errno; one for all wrong keys. */
long flowfd_open_shared(const void __user *argp, size_t size)
{
	struct flowfd_share args;
	struct file *file;
	int err = share_args(&args, FLOWFD_KEEP_ON_EXEC, argp, size);

	if (err)
		return err;
	file = share_find(&args.key);
	if (!file)
		return -ENOENT;
	err = receive_file(file, args.flags & FLOWFD_KEEP_ON_EXEC ? 0 : O_CLOEXEC);
	fput(file);
	return err;
}
