/* SPDX-License-Identifier: MIT */
/*
 * What flowfd-run tells the shim that it preloads: parsed from the options by
 * the one, from an environment variable by the other.
 *
 * As text, settings are words separated by slashes, which no word contains:
 *   maximum=N rate=N burst=N keep=WHICH verbose=MAJOR:MINOR:INODE
 * keep comes as often as needed. The empty text is valid. verbose has the device
 * and the inode of the standard error that reports are for. LOG_VARIABLE, if it
 * is set, is a file that takes the reports instead.
 */
#ifndef FLOWFD_PRELOAD_SETTINGS_H
#define FLOWFD_PRELOAD_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTINGS_VARIABLE "FLOWFD_RUN_SETTINGS"
#define LOG_VARIABLE "FLOWFD_RUN_LOG"

/**
 * struct settings - how to replace a program's eventfds
 * @maximum: of every counter; UINT64_MAX: none
 * @rate: of every counter's bucket; 0: no bucket
 * @burst: capacity of the bucket
 * @verbose: report every eventfd on stderr, while that is the following file
 * @device_major: of the device that holds it
 * @device_minor: of the device that holds it
 * @inode: its number
 * @keep_length: bytes used in @keep; 0: nothing is kept
 * @keep: rules for eventfds to leave real, each ended by a NUL
 */
struct settings {
	uint64_t maximum;
	uint32_t rate;
	uint32_t burst;
	bool verbose;
	uint32_t device_major;
	uint32_t device_minor;
	uint64_t inode;
	size_t keep_length;
	char keep[1024];
};

/** settings_init - neither maximum nor bucket, nothing kept */
void settings_init(struct settings *settings);

/** settings_add - take in one word; returns NULL, or why the word is wrong */
const char *settings_add(struct settings *settings, const char *word);

/** settings_check - after the last word; returns NULL, or what is missing */
const char *settings_check(const struct settings *settings);

/** settings_parse - init, add all words, check; true when all were right */
bool settings_parse(struct settings *settings, const char *text);

/** settings_by_name - does a rule need the name of the object file? */
bool settings_by_name(const struct settings *settings);

/**
 * settings_keep - is this eventfd to stay real?
 * @number: which eventfd of the process it is, from 1
 * @object: base name of the object file that asks for it
 */
bool settings_keep(const struct settings *settings, uint32_t number,
		   const char *object);

#endif /* FLOWFD_PRELOAD_SETTINGS_H */
