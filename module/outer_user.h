/* SPDX-License-Identifier: GPL-2.0-only */
/* The user who is behind what the calling task does, for shares of time. */
#ifndef FLOWFD_OUTER_USER_H
#define FLOWFD_OUTER_USER_H

#include <linux/cred.h>
#include <linux/user_namespace.h>

/*
 * Whoever makes a user namespace can be very many users in it, so this is the user who made
 * the outermost one. Outside, a program that was given to a subordinate id there, and runs
 * with it, cannot be told from another user's.
 */
static inline kuid_t outer_user(void)
{
	const struct user_namespace *ns;
	kuid_t user = current_uid();

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		user = ns->owner;
	return user;
}

#endif /* FLOWFD_OUTER_USER_H */
