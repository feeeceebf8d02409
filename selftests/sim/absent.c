// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a history without bridges, rings or watches does not call. Weak: where the file
 * itself is compiled, it counts.
 */
#include "kernel.h"

#define ABSENT __attribute__((weak))

struct flowfd_counter;

void flowfd_closing_end_hooks(struct rb_root *hooks, const struct file *file);
ABSENT void flowfd_closing_end_hooks(struct rb_root *hooks, const struct file *file) {}

int flowfd_work_class_init(void);
ABSENT int flowfd_work_class_init(void)
{
	return 0;
}

long flowfd_bridge_control(struct file *file, const void *argp, size_t size);
ABSENT long flowfd_bridge_control(struct file *file, const void *argp, size_t size)
{
	return -ENOTTY;
}

void flowfd_bridge_show(struct seq_file *m, struct flowfd_counter *c);
ABSENT void flowfd_bridge_show(struct seq_file *m, struct flowfd_counter *c) {}

void flowfd_bridge_free(struct flowfd_counter *c);
ABSENT void flowfd_bridge_free(struct flowfd_counter *c) {}

int flowfd_watch_wake(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key);
ABSENT int flowfd_watch_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			     void *key)
{
	return 0;
}

struct flowfd_ring;
void flowfd_ring_wake(struct flowfd_ring *ring, __poll_t flags, int sync);
ABSENT void flowfd_ring_wake(struct flowfd_ring *ring, __poll_t flags, int sync) {}

struct flowfd_watch;
void flowfd_publish_traced(struct flowfd_watch *w, __poll_t events, __poll_t flags, int sync);
ABSENT void flowfd_publish_traced(struct flowfd_watch *w, __poll_t events, __poll_t flags,
				  int sync) {}
