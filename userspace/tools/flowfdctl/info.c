// SPDX-License-Identifier: GPL-2.0-only
/* flowfdctl info: whether flowfd can be used here, and what it can do. */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flowfd.h>

#include "flowfdctl.h"

static const struct argp argp = {
	.parser = parse_other,
	.doc = "Show what the loaded flowfd module can do, or what there is without it."
	       "\vExit status: 0, or 1 if no module is loaded or it cannot be used.",
};

static void print_version(void)
{
	FILE *file = fopen("/sys/module/flowfd/version", "re");
	char version[64];

	if (!file || fscanf(file, "%63s", version) != 1)
		strcpy(version, "not in /sys");
	printf("%-16s %s\n", "module", version);
	if (file)
		fclose(file);
}

static void print_features(uint64_t features)
{
	static const struct {
		uint64_t bit;
		const char *name;
	} names[] = {
		{ .bit = FLOWFD_FEATURE_MAXIMUM, .name = "maximum" },
		{ .bit = FLOWFD_FEATURE_QOS, .name = "bucket" },
		{ .bit = FLOWFD_FEATURE_RING, .name = "ring" },
		{ .bit = FLOWFD_FEATURE_SETUP, .name = "setup" },
		{ .bit = FLOWFD_FEATURE_MAPPED, .name = "mapped" },
		{ .bit = FLOWFD_FEATURE_POSTS, .name = "posts" },
		{ .bit = FLOWFD_FEATURE_FLOW, .name = "policies" },
		{ .bit = FLOWFD_FEATURE_STATS, .name = "statistics" },
		{ .bit = FLOWFD_FEATURE_BRIDGE, .name = "bridges" },
		{ .bit = FLOWFD_FEATURE_BALANCE, .name = "balance" },
		{ .bit = FLOWFD_FEATURE_SHARE, .name = "keys" },
	};
	size_t i;

	printf("%-16s", "features");
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (features & names[i].bit)
			printf(" %s", names[i].name);
		features &= ~names[i].bit;
	}
	if (features)
		printf(" %#llx (not known to this program)",
		       (unsigned long long)features);
	putchar('\n');
}

/* What programs that set FLOWFD_FALLBACK have, and what they do without. */
static void print_fallback(void)
{
	static const char *const lines[] = {
		"programs that allow it run without the module:",
		"counters in memory, also shared, without bucket, read and write",
		"rings on epoll: events come with a wait, and a file that is",
		"  closed before it is removed can have one more",
	};
	size_t i;

	printf("%-16s %s\n", "libflowfd", flowfd_version());
	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		printf("%-16s %s\n", i ? "" : "fallback", lines[i]);
	fflush(stdout);
}

static void print_list(void)
{
	int fd = open(KERNEL_LIST, O_RDONLY | O_CLOEXEC);

	printf("%-16s %s\n", "list", fd < 0 ? kernel_list_error(errno) : "for root");
	if (fd >= 0)
		close(fd);
}

int info_main(int argc, char **argv)
{
	struct flowfd_query query;
	int error;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	error = flowfd_query(&query, sizeof(query));
	if (error == -ENODEV || error == -EACCES)
		print_fallback();
	if (error)
		errx(EXIT_FAILURE, "%s", module_error(error));
	print_version();
	printf("%-16s %s\n", "libflowfd", flowfd_version());
	printf("%-16s %u\n", "ABI version", query.abi_version);
	print_features(query.features);
	printf("%-16s at most %u a second\n", "token rate", query.token_rate_max);
	if (query.features & FLOWFD_FEATURE_RING)
		printf("%-16s at most %u watched files\n", "ring", FLOWFD_RING_ITEMS_MAX);
	print_list();
	return EXIT_SUCCESS;
}
