// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses counters and rings line by line: those of the kernel's list, which end with an
 * empty line each, and the fdinfo of one. Does no input or output, so that tests can pass
 * any text.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "flowfdctl.h"

#define FIELD(member) offsetof(struct object, member), sizeof((struct object){ 0 }.member)

/* What the module shows of an object, in its order; the enum values follow. */
static const struct key {
	const char *name;
	int base;
	size_t offset;
	size_t size;
} keys[] = {
	{ "flowfd-uid", 10, FIELD(uid) },
	{ "flowfd-pid", 10, FIELD(pid) },
#define FIRST_COUNTER_KEY 2
	{ "eventfd-count", 16, FIELD(count) },
	{ "eventfd-id", 10, FIELD(id) },
	{ "eventfd-semaphore", 10, FIELD(semaphore) },
	{ "eventfd-maximum", 16, FIELD(maximum) },
	{ "flowfd-token-capacity", 10, FIELD(capacity) },
	{ "flowfd-token-rate", 10, FIELD(rate) },
	{ "flowfd-wakeup-deferred", 10, FIELD(deferred) },
	{ "flowfd-mapped", 10, FIELD(mapped) },
#define FIRST_RING_KEY 10
	{ "flowfd-ring-id", 10, FIELD(id) },
	{ "flowfd-ring-max-items", 10, FIELD(max_items) },
	{ "flowfd-ring-head", 10, FIELD(head) },
	{ "flowfd-ring-tail", 10, FIELD(tail) },
	{ "flowfd-ring-watches", 10, FIELD(watches) },
	{ "flowfd-ring-posts", 10, FIELD(posts) },
	{ "flowfd-ring-busy", 10, FIELD(busy) },
};

#define KEYS  (sizeof(keys) / sizeof(*keys))
#define NAMES (KEYS + VALUES)

/* Bits of keys. MAPPED and POSTS are not in older modules, WATCHES not with BUSY. */
#define BIT(i)	     (1U << (i))
#define CREATOR_KEYS (BIT(FIRST_COUNTER_KEY) - 1)
#define RING_KEYS    (BIT(KEYS) - BIT(FIRST_RING_KEY))
#define COUNTER_KEYS (BIT(FIRST_RING_KEY) - BIT(FIRST_COUNTER_KEY))
#define EVENTFD_KEYS (BIT(FIRST_COUNTER_KEY + 4) - BIT(FIRST_COUNTER_KEY))
#define MAPPED_KEY   BIT(FIRST_RING_KEY - 1)
#define BUSY_KEY     BIT(KEYS - 1)
#define POSTS_KEY    BIT(KEYS - 2)
#define WATCHES_KEY  BIT(KEYS - 3)

/**
 * struct parser - what was found of the object that is being read
 * @list: to which objects are added
 * @expected: the name after the last one that was found, below NAMES
 * @keys: a bit for each key that was found
 * @object: has their numbers, and the values
 * @bad: something is in a form that is not known
 */
struct parser {
	struct list *list;
	unsigned int expected;
	uint32_t keys;
	struct object object;
	bool bad;
};

static void reset(struct parser *parser)
{
	*parser = (struct parser){ .list = parser->list };
	parser->object.fd = -1;
}

/* parser_new - returns a parser that adds to @list, for parser_free() */
struct parser *parser_new(struct list *list)
{
	struct parser *parser = malloc(sizeof(*parser));

	if (!parser)
		err(EXIT_FAILURE, "parser");
	parser->list = list;
	reset(parser);
	return parser;
}

void parser_free(struct parser *parser)
{
	free(parser);
}

static const char *name_of(unsigned int i)
{
	return i < KEYS ? keys[i].name : value_infos[i - KEYS].name;
}

/* Returns what a line is about, and moves it behind the colon; NAMES: nothing known. */
static unsigned int find_name(const struct parser *parser, const char **line)
{
	unsigned int tried, i = parser->expected;

	for (tried = 0; tried < NAMES; tried++) {
		size_t length = strlen(name_of(i));

		if (!strncmp(*line, name_of(i), length) && (*line)[length] == ':') {
			*line += length + 1;
			return i;
		}
		i = i + 1 < NAMES ? i + 1 : 0;
	}
	return NAMES;
}

/* Whether a text is nothing but a number. strtoull() would also accept a sign and 0x. */
static bool parse_number(const char *text, int base, uint64_t max, uint64_t *number)
{
	text += strspn(text, " \t");
	errno = 0;
	*number = strtoull(text, NULL, base);
	return *text &&
	       !text[strspn(text, base == 16 ? "0123456789abcdef" : "0123456789")] &&
	       !errno && *number <= max;
}

/* A word that a newer module may have is as good as none. */
static bool parse_word(struct parser *parser, enum value value, const char *word)
{
	if (value != OVERFLOW)
		return (value == SOURCE || value == SINK) && !strcmp(word, "none");
	if (overflow_from_name(word, object_value(&parser->object, value)))
		parser->object.known |= BIT(value);
	return *word;
}

static bool parse_value(struct parser *parser, enum value value, const char *text)
{
	struct object *object = &parser->object;

	/* Once, and all of one kind. */
	if (object->known & BIT(value) ||
	    (object->known && value_infos[value].kind != object->kind))
		return false;
	object->kind = value_infos[value].kind;
	text += strspn(text, " \t");
	if (value == OVERFLOW || *text < '0' || *text > '9')
		return parse_word(parser, value, text);
	object->known |= BIT(value);
	return parse_number(text, 10, UINT64_MAX, object_value(object, value));
}

static bool parse_key(struct parser *parser, unsigned int i, const char *text)
{
	const struct key *key = &keys[i];
	char *field = (char *)&parser->object + key->offset;
	uint64_t number;

	if (parser->keys & BIT(i))
		return false;
	parser->keys |= BIT(i);
	if (!parse_number(text, key->base,
			  key->size == 8 ? UINT64_MAX :
			  key->size == 4 ? UINT32_MAX :
					   1,
			  &number))
		return false;
	if (key->size == 8)
		*(uint64_t *)(void *)field = number;
	else if (key->size == 4)
		*(uint32_t *)(void *)field = (uint32_t)number;
	else
		*(bool *)field = number;
	return true;
}

/* The kernel writes a newline and a backslash as \012 and \134. */
static bool parse_command(struct parser *parser, const char *text)
{
	char *command = parser->object.command;
	size_t length = 0;

	for (text += *text == ' '; *text && length < COMMAND_SIZE - 1; length++) {
		if (*text == '\\' && text[1] && text[2] && text[3]) {
			command[length] = (char)strtoul(
				(char[]){ text[1], text[2], text[3], 0 }, NULL, 8);
			text += 4;
		} else {
			command[length] = *text++;
		}
	}
	command[length] = '\0';
	return !*text;
}

/* parser_line - take the next line, without its end; unknown lines are ignored */
void parser_line(struct parser *parser, const char *line)
{
	unsigned int name;

	if (!strncmp(line, "flowfd-comm:", 12)) {
		parser->bad |= *parser->object.command ||
			       !parse_command(parser, line + 12);
		return;
	}
	name = find_name(parser, &line);
	if (name == NAMES)
		return;
	parser->expected = name + 1 < NAMES ? name + 1 : 0;
	if (name < KEYS)
		parser->bad |= !parse_key(parser, name, line);
	else
		parser->bad |= !parse_value(parser, name - KEYS, line);
}

static bool is_counter(uint32_t all)
{
	return (all | MAPPED_KEY) == COUNTER_KEYS;
}

static bool is_ring(uint32_t all)
{
	return all == (RING_KEYS & ~(WATCHES_KEY | POSTS_KEY)) ||
	       (all | POSTS_KEY) == (RING_KEYS & ~BUSY_KEY);
}

/* Returns false if what was found is not all of one counter or ring. */
static bool is_good(struct parser *parser)
{
	uint32_t all = parser->keys & ~CREATOR_KEYS;
	enum kind kind = is_ring(all) ? RING : COUNTER;
	bool other = parser->object.known && parser->object.kind != kind;

	parser->object.kind = kind;
	return !parser->bad && !other && (kind == RING || is_counter(all));
}

static struct object *add(struct parser *parser)
{
	struct list *list = parser->list;
	struct object *object;

	list->object = grow(list->object, list->count, sizeof(*list->object));
	object = &list->object[list->count++];
	*object = parser->object;
	return object;
}

/*
 * parser_end - the lines of an object, or of a file that may be another one, are complete
 *
 * Returns what was added to the list; NULL: nothing.
 */
struct object *parser_end(struct parser *parser)
{
	bool ours = parser->keys & ~EVENTFD_KEYS;
	struct object *object = NULL;

	if (ours && is_good(parser))
		object = add(parser);
	else if (ours)
		parser->list->unknown++;
	reset(parser);
	return object;
}
