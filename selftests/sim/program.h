/* SPDX-License-Identifier: GPL-2.0-only */
/* What programs do in memory, by libflowfd's own code. */
#ifndef FLOWFD_SIM_PROGRAM_H
#define FLOWFD_SIM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* @pages: of a counter of the module. */
void program_map(void *pages);
/* Without the module; @overflow: FLOWFD_OVERFLOW_*. 0 or a negative errno. */
int program_make(void *pages, uint64_t maximum, bool one_consumer, bool no_poll,
		 unsigned int overflow);
uint64_t program_lost(void);
/* As flowfd_add() and so on; a timeout of 0 is none. */
int program_add(uint64_t value, uint64_t timeout, bool nonblock);
int program_take(uint64_t *value, uint64_t timeout, bool nonblock);
/* In memory alone: false if that is not possible now. */
bool program_add_in_memory(uint64_t value);
/* Stores anything, as a hostile process may. */
void program_scribble(void);
uint64_t program_count(void);

extern uint64_t program_added, program_took; /* in memory */
extern bool program_dies; /* mortal tasks may end at any step of a program */

#endif /* FLOWFD_SIM_PROGRAM_H */
