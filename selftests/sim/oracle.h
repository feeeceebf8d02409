/* SPDX-License-Identifier: GPL-2.0-only */
/* What must hold when nothing happens any more. */
#ifndef FLOWFD_SIM_ORACLE_H
#define FLOWFD_SIM_ORACLE_H

#include <stdbool.h>

/* Calls sim_fail() with what does not. */
void oracle_judge(void);

#endif /* FLOWFD_SIM_ORACLE_H */
