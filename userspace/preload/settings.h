/* SPDX-License-Identifier: MIT */
/*
 * The settings that flowfd-run passes to the shim. flowfd-run parses them from its
 * options, the shim from an environment variable.
 *
 * As text, settings are words separated by slashes, which no word contains:
 *   maximum=N/rate=N/burst=N/read-mark=N/max-delay=TIME/write-mark=N/overflow=POLICY/
 *   keep-eventfd=WHICH/verbose=FILE
 * TIME is a number with a unit: ns, us, ms or s. keep-eventfd may be repeated. The empty
 * text is valid. FILE names the standard error that gets the reports.
 */
#ifndef FLOWFD_PRELOAD_SETTINGS_H
#define FLOWFD_PRELOAD_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTINGS_VARIABLE "FLOWFD_RUN_SETTINGS"

/* Of the name of a file: device and inode. */
#define SETTINGS_STDERR_SIZE 64

/**
 * struct settings - how to put counters in the place of a program's eventfds
 * @maximum: of every counter; UINT64_MAX: none
 * @rate: of every counter's bucket, in wakeups per second; 0: no bucket
 * @burst: capacity of the bucket, in wakeups
 * @read_mark: readers are woken at this count; 0: none
 * @write_mark: room that pollers for writing wait for; 0: none
 * @max_delay: ns after which readers are woken below @read_mark, too; 0: none
 * @overflow: FLOWFD_OVERFLOW_*
 * @verbose: report every eventfd on stderr
 * @stderr_name: of the only file that gets reports
 * @keep_length: bytes used in @keep; 0: nothing is kept
 * @keep: rules for eventfds to leave real, each ended by a NUL
 */
struct settings {
	uint64_t maximum;
	uint32_t rate;
	uint32_t burst;
	uint64_t read_mark;
	uint64_t write_mark;
	uint64_t max_delay;
	uint32_t overflow;
	bool verbose;
	char stderr_name[SETTINGS_STDERR_SIZE];
	size_t keep_length;
	char keep[1024];
};

/** settings_init - set neither maximum nor bucket nor policies, and keep nothing */
void settings_init(struct settings *settings);

/** settings_add - parse one word; returns NULL, or why the word is wrong */
const char *settings_add(struct settings *settings, const char *word);

/** settings_check - check the whole; returns NULL, or which option is wrong and why */
const char *settings_check(const struct settings *settings);

/** settings_parse - init, add all words, check; true when all were right */
bool settings_parse(struct settings *settings, const char *text);

/** settings_have_policies - whether they need FLOWFD_FEATURE_FLOW */
bool settings_have_policies(const struct settings *settings);

/**
 * settings_keep - whether this eventfd stays real
 * @settings: complete
 * @number: number of the eventfd in its process, from 1
 * @object: base name of the object file that asks for it
 */
bool settings_keep(const struct settings *settings, uint32_t number, const char *object);

/** settings_name_stderr - name the file that descriptor 2 is; "": it has no name */
void settings_name_stderr(char name[SETTINGS_STDERR_SIZE]);

/** settings_stderr_is_ours - whether descriptor 2 is the file that gets reports */
bool settings_stderr_is_ours(const struct settings *settings);

#endif /* FLOWFD_PRELOAD_SETTINGS_H */
