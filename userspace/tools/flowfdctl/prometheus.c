// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfdctl --prometheus: metrics in the text format of Prometheus, for the textfile
 * collector of its node_exporter.
 */
#include <argp.h>
#include <stdlib.h>

#include "flowfdctl.h"

static const struct argp argp = {
	.parser = parse_other,
	.doc = "Print metrics for the textfile collector of node_exporter."
	       "\vExample:\n"
	       "  mkdir -p /var/lib/flowfdctl && cd /var/lib/flowfdctl || exit\n"
	       "  flowfdctl --prometheus > new\n"
	       "  case $? in 0 | 2)\n"
	       "      mv -T new /var/lib/prometheus/node-exporter/flowfd.prom ;;\n"
	       "  esac",
};

int prometheus_main(int argc, char **argv)
{
	struct scan *scan;
	struct line *lines;
	size_t count, kept;
	bool complete;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	scan = scan_all(0);
	need_module(scan);
	lines = lines_of(scan, &count);
	kept = metrics_limit(lines, count);
	scan->no_room += count - kept;
	complete = scan_is_complete(scan);
	metrics_print(scan, lines, kept);
	fflush(stdout);
	if (!complete)
		scan_remark(scan, stderr, "flowfdctl: ");
	free(lines);
	scan_free(scan);
	return complete ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}
