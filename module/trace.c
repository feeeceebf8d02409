// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracepoints that trace.h declares. The kernel's headers make them of it, which include
 * it again.
 */
#include "counter.h"
#include "watch.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
