/* SPDX-License-Identifier: GPL-2.0-only */
/* What counters and rings have in common: references, a creator, a place in the list. */
#ifndef FLOWFD_OBJECTS_H
#define FLOWFD_OBJECTS_H

#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

struct seq_file;

/* Positions in the list: the numbers of counters, then the numbers of rings. */
#define FLOWFD_FIRST_RING (1LL << 32)

/**
 * struct flowfd_object - the part of a counter or ring that the list needs
 * @refs: one of its file, and of each reader that prints it; of a ring also one of each
 *	watch and of each pending work item
 * @uid: real user of the task that made it; fixed, as are the members below
 * @pid: its process, in the first namespace of processes
 * @comm: its name; any bytes
 */
struct flowfd_object {
	refcount_t refs;
	kuid_t uid;
	pid_t pid;
	char comm[TASK_COMM_LEN];
};

/**
 * struct flowfd_object_ops - what the list does with counters, or with rings
 * @put: drops a reference, perhaps after the end of the object's file; does not wait
 * @show: prints what fdinfo has; does not wait
 */
struct flowfd_object_ops {
	void (*put)(struct flowfd_object *o);
	void (*show)(struct seq_file *m, struct flowfd_object *o);
};

extern struct xarray flowfd_counters;
extern struct xarray flowfd_rings;

/* objects.c */
int flowfd_object_add_counter(struct flowfd_object *o, u32 *id);
int flowfd_object_add_ring(struct flowfd_object *o, u64 *id);
void flowfd_objects_init(const struct flowfd_object_ops *counters,
			 const struct flowfd_object_ops *rings);
void flowfd_objects_exit(void);

#endif /* FLOWFD_OBJECTS_H */
