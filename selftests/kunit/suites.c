// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfd_kunit - KUnit suites of the arithmetic of flowfd. Loading the module runs
 * them; their results are in debugfs.
 */
#include <linux/module.h>

#include "kunit.h"

kunit_test_suites(&bucket_suite, &count_suite, &flow_suite);

MODULE_DESCRIPTION("KUnit suites of the arithmetic of flowfd");
MODULE_AUTHOR("The flowfd authors");
MODULE_LICENSE("GPL");
