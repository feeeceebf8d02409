/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replaces kpatch-build's header of this name in a kernel that has the patches in its
 * source. The pre-patch callback runs at boot. From then on, a thread runs the post-patch
 * and the pre-unpatch callback in turn, at random moments of the tests.
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

/* Definitions of the variables that are declared above. */
#define KPATCH_POST_PATCH_CALLBACK(function) \
	static void (*livepatch_in_force)(struct klp_object *obj) = function

#define KPATCH_PRE_UNPATCH_CALLBACK(function) \
	static void (*livepatch_end)(struct klp_object *obj) = function

/* The module never ends here. */
#define KPATCH_POST_UNPATCH_CALLBACK(function) \
	static void (*livepatch_ended)(struct klp_object *obj) __maybe_unused = function
