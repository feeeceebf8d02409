// SPDX-License-Identifier: MIT
/* Sizes and constants as C has them, which a test compares with those of lib.rs. */
#include <flowfd.h>

const size_t flowfd_sys_sizes[] = {
	sizeof(struct flowfd_counter),
	_Alignof(struct flowfd_counter),
	sizeof(struct flowfd_create_counter),
	_Alignof(struct flowfd_create_counter),
	sizeof(struct flowfd_flow),
	_Alignof(struct flowfd_flow),
	offsetof(struct flowfd_counter, fd),
	offsetof(struct flowfd_create_counter, maximum),
	offsetof(struct flowfd_create_counter, flags),
	offsetof(struct flowfd_create_counter, qos),
	offsetof(struct flowfd_flow, overflow),
	offsetof(struct flowfd_flow, count),
	offsetof(struct flowfd_flow, lost),
	offsetof(struct flowfd_flow, set),
	FLOWFD_SEMAPHORE,
	FLOWFD_NONBLOCK,
	FLOWFD_FALLBACK,
	FLOWFD_OPTIONAL_BUCKET,
	FLOWFD_ONE_CONSUMER,
	FLOWFD_NO_POLL,
	FLOWFD_EXPORT_MAX,
	FLOWFD_OVERFLOW_FAIL,
	FLOWFD_OVERFLOW_SATURATE,
	FLOWFD_OVERFLOW_DROP,
	FLOWFD_SET_OVERFLOW,
};
