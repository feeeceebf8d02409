/* SPDX-License-Identifier: GPL-2.0-only */
/* Histories of a ring: events and posts are published, and tasks wait for them. */
#ifndef FLOWFD_SIM_RINGS_H
#define FLOWFD_SIM_RINGS_H

void rings_live(void);

#endif /* FLOWFD_SIM_RINGS_H */
