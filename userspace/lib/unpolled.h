/* SPDX-License-Identifier: MIT */
/*
 * A counter without the module that nobody polls, FLOWFD_NO_POLL: threads sleep on the word
 * @armed. The functions are as those of doorbell.h.
 */
#ifndef FLOWFD_LIB_UNPOLLED_H
#define FLOWFD_LIB_UNPOLLED_H

#include "device.h"

/** flowfd__unpolled_notify - wake all who sleep and may be able to proceed */
void flowfd__unpolled_notify(const struct flowfd_counter *c);

/** flowfd__unpolled_add - as flowfd__doorbell_add() */
int flowfd__unpolled_add(const struct flowfd_counter *c, uint64_t value,
			 uint64_t deadline);

/** flowfd__unpolled_take - as flowfd__doorbell_take() */
int flowfd__unpolled_take(const struct flowfd_counter *c, uint64_t *value,
			  uint64_t deadline);

#endif /* FLOWFD_LIB_UNPOLLED_H */
