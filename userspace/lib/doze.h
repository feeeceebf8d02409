/* SPDX-License-Identifier: MIT */
/* Sleeping on a word that processes share: futex(2). errno stays as it is. */
#ifndef FLOWFD_LIB_DOZE_H
#define FLOWFD_LIB_DOZE_H

#include <stdint.h>

/**
 * flowfd__doze - sleep until somebody wakes, if a word has not changed
 * @word: in shared memory
 * @value: which it had
 * @bits: of flowfd__rouse() for which to wake
 * @deadline: of deadline.h, not FLOWFD__AT_ONCE
 *
 * A cancellation point, but not while it sleeps. Returns 0, also for nothing, -ETIMEDOUT,
 * -EINTR or, of a filter, -EACCES.
 */
int flowfd__doze(const uint32_t *word, uint32_t value, uint32_t bits, uint64_t deadline);

/** flowfd__rouse - wake all who sleep on @word for one of @bits */
void flowfd__rouse(const uint32_t *word, uint32_t bits);

#endif /* FLOWFD_LIB_DOZE_H */
