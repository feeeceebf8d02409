// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses /proc/PID/fdinfo/FD of a counter or a ring. Does no input or output, so that
 * tests can pass any text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flowfdctl.h"

/* KEYS_FROM() relies on the order. */
enum key {
	COUNT,
	MAXIMUM,
	SEMAPHORE,
	COUNTER_ID,
	CAPACITY, /* only flowfd has this key and the next ones */
	RATE,
	DEFERRED,
	RING_ID,
	MAX_ITEMS,
	HEAD,
	TAIL,
	WATCHES, /* either this or the next */
	BUSY,
	POSTS,	/* with WATCHES; modules without posts lack it */
	MAPPED, /* modules without mapped counters lack it */
	KEYS,
};

static const struct {
	const char *name;
	int base;
	uint64_t max;
} keys[KEYS] = {
	[COUNT] = { "eventfd-count:", 16, UINT64_MAX },
	[MAXIMUM] = { "eventfd-maximum:", 16, UINT64_MAX },
	[SEMAPHORE] = { "eventfd-semaphore:", 10, 1 },
	[COUNTER_ID] = { "eventfd-id:", 10, INT32_MAX },
	[CAPACITY] = { "flowfd-token-capacity:", 10, UINT32_MAX },
	[RATE] = { "flowfd-token-rate:", 10, UINT32_MAX },
	[DEFERRED] = { "flowfd-wakeup-deferred:", 10, 1 },
	[RING_ID] = { "flowfd-ring-id:", 10, UINT64_MAX },
	[MAX_ITEMS] = { "flowfd-ring-max-items:", 10, UINT32_MAX },
	[HEAD] = { "flowfd-ring-head:", 10, UINT32_MAX },
	[TAIL] = { "flowfd-ring-tail:", 10, UINT32_MAX },
	[WATCHES] = { "flowfd-ring-watches:", 10, UINT32_MAX },
	[BUSY] = { "flowfd-ring-busy:", 10, 1 },
	[POSTS] = { "flowfd-ring-posts:", 10, UINT32_MAX },
	[MAPPED] = { "flowfd-mapped:", 10, 1 },
};

#define KEYS_FROM(key) ((1U << KEYS) - (1U << (key)))
#define RING_KEYS      (KEYS_FROM(RING_ID) & ~KEYS_FROM(MAPPED))
#define COUNTER_KEYS   (KEYS_FROM(COUNT) & ~KEYS_FROM(RING_ID))

/* The keys that were found, a bit for each, and their values; what else was found. */
struct found {
	unsigned int keys;
	uint64_t key[KEYS];
	value_set values;
	uint64_t value[VALUES];
};

/* Parses a name and a number at @text, and moves it behind them. */
static bool take(const char **text, const char *name, int base, uint64_t max,
		 uint64_t *value)
{
	size_t length = strlen(name);
	const char *number;
	char *end;

	if (strncmp(*text, name, length))
		return false;
	number = *text + length;
	number += strspn(number, " \t");
	/* strtoull() would also accept a sign and 0x. */
	length = strspn(number, base == 16 ? "0123456789abcdef" : "0123456789");
	errno = 0;
	*value = strtoull(number, &end, base);
	if (!length || end != number + length || errno || *value > max)
		return false;
	*text = end;
	return true;
}

/* Returns the value that a line is about, and moves it behind the name; VALUES: none. */
static enum value find_value(const char **line)
{
	static const char *const prefixes[] = {
		[COUNTER] = "flowfd-",
		[RING] = "flowfd-ring-",
	};
	enum value value;
	size_t prefix, name;

	for (value = 0; value < VALUES; value++) {
		const struct value_info *info = &value_infos[value];

		prefix = strlen(prefixes[info->kind]);
		name = strlen(info->name);
		if (!strncmp(*line, prefixes[info->kind], prefix) &&
		    !strncmp(*line + prefix, info->name, name) &&
		    (*line)[prefix + name] == ':') {
			*line += prefix + name + 1;
			break;
		}
	}
	return value;
}

/* A word that a newer module may have is as good as none. */
static bool parse_word(enum value value, const char *word, struct found *found)
{
	size_t length = strcspn(word, "\n");

	if (value == OVERFLOW) {
		if (overflow_from_name(word, length, &found->value[value]))
			found->values |= 1U << value;
		return length;
	}
	return (value == SOURCE || value == SINK) && !strncmp(word, "none\n", 5);
}

/* Returns false if the line has one of the values in a form that is not known. */
static bool parse_value(const char *line, struct found *found)
{
	enum value value = find_value(&line);

	if (value == VALUES)
		return true;
	if (found->values & 1U << value)
		return false;
	line += strspn(line, " \t");
	if (value == OVERFLOW || !strchr("0123456789", *line))
		return parse_word(value, line, found);
	found->values |= 1U << value;
	return take(&line, "", 10, UINT64_MAX, &found->value[value]) && *line == '\n';
}

/* Returns false if the line has one of the keys without a number. */
static bool parse_line(const char *line, struct found *found)
{
	unsigned int i;

	for (i = 0; i < KEYS; i++)
		if (!strncmp(line, keys[i].name, strlen(keys[i].name)))
			break;
	if (i == KEYS)
		return parse_value(line, found);
	if (found->keys & 1U << i)
		return false;
	found->keys |= 1U << i;
	return take(&line, keys[i].name, keys[i].base, keys[i].max, &found->key[i]) &&
	       *line == '\n';
}

static bool parse_watch(const char *line, struct watch *watch)
{
	uint64_t fd, events, data, pinned;

	if (!take(&line, "tfd:", 10, INT32_MAX, &fd) ||
	    !take(&line, " events:", 16, UINT32_MAX, &events) ||
	    !take(&line, " data:", 16, UINT64_MAX, &data) ||
	    !take(&line, " pinned:", 10, 1, &pinned) || *line != '\n')
		return false;
	watch->fd = (int)fd;
	watch->events = (uint32_t)events;
	watch->data = data;
	watch->pinned = pinned;
	return true;
}

static void fill(struct object *object, enum kind kind, const struct found *found)
{
	const uint64_t *value = found->key;

	object->kind = kind;
	object->id = value[kind == RING ? RING_ID : COUNTER_ID];
	object->count = value[COUNT];
	object->maximum = value[MAXIMUM];
	object->semaphore = value[SEMAPHORE];
	object->capacity = (uint32_t)value[CAPACITY];
	object->rate = (uint32_t)value[RATE];
	object->deferred = value[DEFERRED];
	object->max_items = (uint32_t)value[MAX_ITEMS];
	object->head = (uint32_t)value[HEAD];
	object->tail = (uint32_t)value[TAIL];
	object->watches = (uint32_t)value[WATCHES];
	object->busy = value[BUSY];
	object->posts = (uint32_t)value[POSTS];
	object->mapped = value[MAPPED];
	object->known = found->values;
	memcpy(object->value, found->value, sizeof(object->value));
}

/* Whether no value is one of the other kind. */
static bool are_of(enum kind kind, value_set values)
{
	enum value value;

	for (value = 0; value < VALUES; value++)
		if (values & 1U << value && value_infos[value].kind != kind)
			return false;
	return true;
}

static bool is_ring(unsigned int all)
{
	const unsigned int other = 1U << WATCHES | 1U << BUSY | 1U << POSTS;

	return all == (RING_KEYS & ~(1U << BUSY)) ||
	       all == ((RING_KEYS & ~other) | 1U << WATCHES) ||
	       all == ((RING_KEYS & ~other) | 1U << BUSY);
}

static bool is_counter(unsigned int all)
{
	return (all | 1U << MAPPED) == (COUNTER_KEYS | 1U << MAPPED);
}

/**
 * fdinfo_parse - parse the fdinfo of a file
 * @text: the fdinfo; text behind the last newline is ignored
 * @object: filled in if the file is a counter or a ring
 * @watch: receives the first watches of a ring
 * @room: length of @watch; further watches are ignored
 *
 * Unknown lines are ignored: newer modules may have more. Returns FDINFO_OBJECT;
 * FDINFO_OTHER: not of flowfd; FDINFO_UNKNOWN: of flowfd, but in a form that this
 * program does not know.
 */
enum fdinfo fdinfo_parse(const char *text, struct object *object, struct watch *watch,
			 size_t room)
{
	struct found found = { 0 };
	const char *line, *end;
	uint32_t listed = 0;
	bool good = true;

	*object = (struct object){ 0 };
	for (line = text; (end = strchr(line, '\n')); line = end + 1) {
		if (strncmp(line, "tfd:", 4)) {
			good &= parse_line(line, &found);
			continue;
		}
		/* Watches of an epoll are ignored. */
		if (!(found.keys & RING_KEYS))
			continue;
		if (listed == room)
			break;
		good &= parse_watch(line, &watch[listed++]);
	}
	if (!(found.keys & KEYS_FROM(CAPACITY)))
		return FDINFO_OTHER;
	if (good && is_ring(found.keys) && are_of(RING, found.values))
		fill(object, RING, &found);
	else if (good && is_counter(found.keys) && are_of(COUNTER, found.values))
		fill(object, COUNTER, &found);
	else
		return FDINFO_UNKNOWN;
	object->watch = watch;
	object->listed = listed;
	return FDINFO_OBJECT;
}

/**
 * fdinfo_is_cut - whether lines about a counter or ring can be missing
 * @text: the beginning of a fdinfo
 * @size: of the memory that it was read into
 *
 * Lines of locks come before those of flowfd: a user chooses which of these are the last
 * ones that fit. The list of watches and posts comes behind all others.
 */
bool fdinfo_is_cut(const char *text, size_t size)
{
	return strlen(text) == size - 1 && !strstr(text, "\ntfd:") &&
	       !strstr(text, "\npost:");
}

/* fdinfo_eventfd - parse the fdinfo of an eventfd; returns false if it has no number */
bool fdinfo_eventfd(const char *text, uint64_t *id)
{
	const char *line = strstr(text, "\neventfd-id:");

	/* A counter has one, too. */
	return line && !strstr(text, "\nflowfd-") &&
	       take(&line, "\neventfd-id:", 10, INT32_MAX, id) && *line == '\n';
}

/* The consumer can store any head, but an item is in the index once at most. */
uint32_t object_pending(const struct object *object)
{
	uint32_t pending = object->tail - object->head;

	return pending < object->max_items ? pending : object->max_items;
}
