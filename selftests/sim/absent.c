// SPDX-License-Identifier: GPL-2.0-only
/* What the files that build.mk leaves out have, and a history does not need. */
#include "kernel.h"

struct flowfd_counter;
struct flowfd_object;
struct flowfd_ring;
struct flowfd_ring_entry;
struct flowfd_watch;

struct xarray flowfd_counters, flowfd_rings;

void flowfd_closing_end_hooks(struct rb_root *hooks, const struct file *file) {}

int flowfd_watch_wake(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	return 0;
}

void flowfd_publish_traced(struct flowfd_watch *w, __poll_t events, int sync) {}

/* The rings of histories watch no files; publishers are called without. */
int flowfd_watch_control(struct flowfd_ring *ring, const struct flowfd_ring_entry *entry)
{
	return -EINVAL;
}

void flowfd_watch_remove_all(struct flowfd_ring *ring) {}

void flowfd_watch_show_all(struct flowfd_ring *ring, struct seq_file *m) {}

void flowfd_repoll_init_ring(struct flowfd_ring *ring) {}

bool flowfd_repoll_is_due(struct flowfd_ring *ring)
{
	return false;
}

void flowfd_repoll_now(struct flowfd_ring *ring) {}

int flowfd_object_add_counter(struct flowfd_object *o, u32 *id)
{
	*id = 1;
	return 0;
}

int flowfd_object_add_ring(struct flowfd_object *o, u64 *id)
{
	*id = 1;
	return 0;
}

long flowfd_share(struct file *file, u64 id, void *argp, size_t size)
{
	return -ENOTTY;
}

void flowfd_unshare(u64 id) {}
