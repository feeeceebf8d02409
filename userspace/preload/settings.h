/* SPDX-License-Identifier: MIT */
/*
 * The settings that flowfd-run passes to the shim. flowfd-run parses them from its
 * options, the shim from an environment variable.
 *
 * As text, settings are words separated by slashes, which no word contains:
 *   maximum=N/rate=N/burst=N/mapped=EDGES/keep=WHICH/verbose=MAJOR:MINOR:INODE
 * EDGES is "add" or "take". keep may be repeated. The empty text is valid. verbose has the device and the inode
 * of the standard error that gets the reports. LOG_VARIABLE, if it is set, names a
 * file that gets them instead.
 */
#ifndef FLOWFD_PRELOAD_SETTINGS_H
#define FLOWFD_PRELOAD_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTINGS_VARIABLE "FLOWFD_RUN_SETTINGS"
#define LOG_VARIABLE	  "FLOWFD_RUN_LOG"

/**
 * struct settings - how to put counters in the place of a program's eventfds
 * @maximum: of every counter; UINT64_MAX: none
 * @rate: of every counter's bucket, in wakeups per second; 0: no bucket
 * @burst: capacity of the bucket, in wakeups
 * @mapped: add and take in memory
 * @edge_per_take: FLOWFD_EDGE_PER_TAKE for these counters
 * @verbose: report every eventfd on stderr, while stderr is the following file
 * @device_major: of the file's device
 * @device_minor: of the file's device
 * @inode: number of the file's inode
 * @keep_length: bytes used in @keep; 0: nothing is kept
 * @keep: rules for eventfds to leave real, each ended by a NUL
 */
struct settings {
	uint64_t maximum;
	uint32_t rate;
	uint32_t burst;
	bool mapped;
	bool edge_per_take;
	bool verbose;
	uint32_t device_major;
	uint32_t device_minor;
	uint64_t inode;
	size_t keep_length;
	char keep[1024];
};

/** settings_init - set neither maximum nor bucket, and keep nothing */
void settings_init(struct settings *settings);

/** settings_add - parse one word; returns NULL, or why the word is wrong */
const char *settings_add(struct settings *settings, const char *word);

/** settings_check - check the whole; returns NULL, or what is missing */
const char *settings_check(const struct settings *settings);

/** settings_parse - init, add all words, check; true when all were right */
bool settings_parse(struct settings *settings, const char *text);

/** settings_by_name - whether a rule needs the name of the object file */
bool settings_by_name(const struct settings *settings);

/**
 * settings_keep - whether this eventfd stays real
 * @settings: complete
 * @number: number of the eventfd in its process, from 1
 * @object: base name of the object file that asks for it
 */
bool settings_keep(const struct settings *settings, uint32_t number, const char *object);

#endif /* FLOWFD_PRELOAD_SETTINGS_H */
