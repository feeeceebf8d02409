/* SPDX-License-Identifier: GPL-2.0-only */
/* The eventfds at the ends of the subject's bridge: a source feeds it, it signals a sink. */
#ifndef FLOWFD_SIM_ENDS_H
#define FLOWFD_SIM_ENDS_H

#include <stdbool.h>
#include <stdint.h>

/* @used: this history has bridges. */
void ends_begin(bool used);
/* What an actor does: signals the source, adds or removes an end. */
void ends_act(void);
/* A task that waits for the sink's eventfd. */
void ends_run_reader(void *arg);
void ends_stop(void);
/* What was signalled and is not in the counter yet, or was not read from the sink. */
uint64_t ends_count(void);
/* What ends_act() added, less what the task took. */
uint64_t ends_added(void);
/* @ready, @room: of the counter in the end. */
void ends_judge(bool ready, bool room);

extern bool ends_used;

#endif /* FLOWFD_SIM_ENDS_H */
