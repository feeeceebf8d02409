// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters and rings that are opened by a key: a number and a secret. An array has the
 * keys by their numbers. A key holds no reference to its file. It leaves the array, under
 * the array's lock, when the file is released: so a file that is found has its memory, but
 * perhaps no reference any more; then it stays closed. docs/sharing.md has the reasons.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "abi.h"
#include "compat.h"
#include "objects.h"
#include "share.h"

static_assert(sizeof(struct flowfd_share) == FLOWFD_SHARE_SIZE_VER0);
static_assert(sizeof(struct flowfd_key) == 3 * sizeof(u64));

/**
 * struct flowfd_shared - how others open a counter or ring; fixed
 * @file: its file; not a reference
 * @key: what they must know
 */
struct flowfd_shared {
	struct file *file;
	struct flowfd_key key;
};

/* Two, as an index of 32 bits does not tell a counter from a ring. */
static DEFINE_XARRAY_FLAGS(keys_of_counters, XA_FLAGS_ACCOUNT);
static DEFINE_XARRAY_FLAGS(keys_of_rings, XA_FLAGS_ACCOUNT);

static struct xarray *share_keys(u64 id)
{
	return id < FLOWFD_FIRST_RING ? &keys_of_counters : &keys_of_rings;
}

static int share_args(struct flowfd_share *args, u32 flags, const void __user *argp,
		      size_t size)
{
	int err;

	err = flowfd_copy_args(args, sizeof(*args), FLOWFD_SHARE_SIZE_VER0, argp, size);
	if (err)
		return err;
	return args->flags & ~flags || args->reserved ? -EINVAL : 0;
}

/*
 * Makes the key of a file that has none. Of two tasks that do so at the same time, both
 * get that of the first. Returns an ERR_PTR if it cannot.
 */
static struct flowfd_shared *share_make(struct file *file, u64 id)
{
	struct flowfd_shared *shared, *other = NULL;
	int err;

	shared = kmalloc(sizeof(*shared), GFP_KERNEL_ACCOUNT);
	if (!shared)
		return ERR_PTR(-ENOMEM);
	shared->file = file;
	shared->key.id = id;
	/* Waits at boot, for the first random numbers that cannot be guessed. */
	err = get_random_bytes_wait(shared->key.secret, sizeof(shared->key.secret));
	if (!err) {
		other = xa_cmpxchg(share_keys(id), id, NULL, shared, GFP_KERNEL_ACCOUNT);
		err = xa_err(other);
	}
	if (!err && !other)
		return shared;
	kfree_sensitive(shared);
	return err ? ERR_PTR(err) : other;
}

/* FLOWFD_IOC_SHARE of a file, by a caller that has it. @id: position in the list of all. */
long flowfd_share(struct file *file, u64 id, void __user *argp, size_t size)
{
	struct flowfd_shared *shared;
	struct flowfd_share args;
	int err = share_args(&args, 0, argp, size);

	if (err)
		return err;
	shared = xa_load(share_keys(id), id) ?: share_make(file, id);
	if (IS_ERR(shared))
		return PTR_ERR(shared);
	args.key = shared->key;
	return flowfd_copy_answer(argp, size, &args, sizeof(args),
				  FLOWFD_SHARE_SIZE_VER0);
}

/* The file is released: from here on no key opens it. Before another can get its number. */
void flowfd_unshare(u64 id)
{
	/*
	 * If it has a key, that was there before the last reference to the file went: so a
	 * close without a key does not wait for tasks that try keys under the lock.
	 */
	if (xa_load(share_keys(id), id))
		kfree_sensitive(xa_erase(share_keys(id), id));
}

/* Stores that failed for lack of memory may have left nodes without entries. */
void flowfd_share_exit(void)
{
	xa_destroy(&keys_of_counters);
	xa_destroy(&keys_of_rings);
}

/* In constant time. crypto_memneq() is not in every kernel. */
static bool share_is_key(const struct flowfd_key *key, const struct flowfd_key *other)
{
	const u64 *a = (const u64 *)key, *b = (const u64 *)other;
	u64 difference = 0;
	unsigned int i;

	for (i = 0; i < sizeof(*key) / sizeof(u64); i++) {
		difference |= a[i] ^ b[i];
		/* Or the compiler may stop at the first that differs. */
		OPTIMIZER_HIDE_VAR(difference);
	}
	return !difference;
}

/* A new reference, or NULL; under the lock of the array. */
static struct file *share_get_file(struct flowfd_shared *shared,
				   const struct flowfd_key *key)
{
	if (!shared || !share_is_key(&shared->key, key))
		return NULL;
	if (shared->file->f_cred->user_ns != current_user_ns())
		return NULL;
	return get_file_active(&shared->file);
}

/* FLOWFD_IOC_OPEN. Returns a descriptor or a negative errno; one for all wrong keys. */
long flowfd_open_shared(const void __user *argp, size_t size)
{
	struct flowfd_share args;
	struct xarray *keys;
	struct file *file;
	int err = share_args(&args, FLOWFD_KEEP_ON_EXEC, argp, size);

	if (err)
		return err;
	keys = share_keys(args.key.id);
	xa_lock(keys);
	file = share_get_file(xa_load(keys, args.key.id), &args.key);
	xa_unlock(keys);
	if (!file)
		return -ENOENT;
	err = receive_file(file, args.flags & FLOWFD_KEEP_ON_EXEC ? 0 : O_CLOEXEC);
	fput(file);
	return err;
}
