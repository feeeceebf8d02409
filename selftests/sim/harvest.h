/* SPDX-License-Identifier: GPL-2.0-only */
/* What programs do with a ring in memory, by libflowfd's own code. */
#ifndef FLOWFD_SIM_HARVEST_H
#define FLOWFD_SIM_HARVEST_H

#include <stdbool.h>
#include <stdint.h>

void harvest_map(void *memory, uint32_t items, uint32_t index, uint32_t slots);
bool harvest_next(uint64_t *data);
void harvest_post(uint32_t item);
/* FLOWFD_IOC_RING_NOTIFY */
int harvest_notify(void);

#endif /* FLOWFD_SIM_HARVEST_H */
