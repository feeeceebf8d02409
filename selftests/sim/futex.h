/* SPDX-License-Identifier: GPL-2.0-only */
/* futex(2): FUTEX_WAIT_BITSET and FUTEX_WAKE_BITSET of all. */
#ifndef FLOWFD_SIM_FUTEX_H
#define FLOWFD_SIM_FUTEX_H

#include <stdint.h>

void futex_begin(void);
/* 0, -EAGAIN, -ETIMEDOUT or -EINTR. */
int futex_wait(const uint32_t *word, uint32_t value, uint32_t bits, uint64_t deadline);
void futex_wake(const uint32_t *word, uint32_t bits);

#endif /* FLOWFD_SIM_FUTEX_H */
