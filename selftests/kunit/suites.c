// SPDX-License-Identifier: GPL-2.0-only
/* flowfd_kunit - KUnit suites of flowfd's arithmetic, run when this is loaded. */
#include <linux/module.h>

#include "kunit.h"

kunit_test_suites(&bucket_suite, &count_suite);

MODULE_DESCRIPTION("KUnit suites of flowfd's arithmetic");
MODULE_AUTHOR("The flowfd authors");
MODULE_LICENSE("GPL");
