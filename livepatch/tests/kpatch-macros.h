/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For a kernel that is built with the patches in its source, in place of
 * kpatch-build's header of this name: what a livepatch does when it is loaded is done
 * at boot, and from then on the end of it and its coming into force alternate, so that
 * tests run through both at any moment.
 */
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/kthread.h>
#include <linux/random.h>

static void (*livepatch_in_force)(struct klp_object *obj);
static void (*livepatch_end)(struct klp_object *obj);

static int livepatch_to_and_fro(void *unused)
{
	for (;;) {
		livepatch_in_force(NULL);
		usleep_range(100, 100 + get_random_u32() % 50000);
		livepatch_end(NULL);
		usleep_range(100, 100 + get_random_u32() % 5000);
	}
	return 0;
}

static int __init livepatch_start(void)
{
	return PTR_ERR_OR_ZERO(kthread_run(livepatch_to_and_fro, NULL,
					   "livepatch"));
}
late_initcall(livepatch_start);

#define KPATCH_PRE_PATCH_CALLBACK(function) \
	static int __init function##_at_boot(void) \
	{ \
		return function(NULL); \
	} \
	core_initcall(function##_at_boot)

/* The definitions of what is only declared above. */
#define KPATCH_POST_PATCH_CALLBACK(function) \
	static void (*livepatch_in_force)(struct klp_object *obj) = function

#define KPATCH_PRE_UNPATCH_CALLBACK(function) \
	static void (*livepatch_end)(struct klp_object *obj) = function
