/* SPDX-License-Identifier: GPL-2.0-only */
/* A shared library that makes eventfds, for rules that name an object file. */
#ifndef FLOWFD_TESTS_MAKER_H
#define FLOWFD_TESTS_MAKER_H

/** maker_eventfd - eventfd(@initial, 0) */
int maker_eventfd(unsigned int initial);

#endif /* FLOWFD_TESTS_MAKER_H */
