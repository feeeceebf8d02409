// SPDX-License-Identifier: GPL-2.0-only
/* The columns of tables: their names, and what is in them. */
#include <inttypes.h>

#include "flowfdctl.h"

/* column_name - the heading of a column */
const char *column_name(enum kind kind, unsigned int column)
{
	/* In the order of enum column. */
	static const char *const names[COLUMNS - VALUES] = {
		"COUNTER", "UID",      "PID",	  "FD",	     "COUNT", "MAXIMUM", "RATE",
		"BURST",   "DEFERRED", "TYPE",	  "WATCHES", "POSTS", "MAX",	 "HEAD",
		"TAIL",	   "PENDING",  "COMMAND",
	};

	if (column == NUMBER && kind == RING)
		return "RING";
	return column < VALUES ? value_infos[column].heading : names[column - VALUES];
}

/* column_number - returns whether an object has a number in a column, and what it is */
bool column_number(const struct object *object, unsigned int column, uint64_t *number)
{
	const uint64_t numbers[COLUMNS - VALUES] = {
		[NUMBER - VALUES] = object->id,
		[UID - VALUES] = object->uid,
		[PID - VALUES] = (uint64_t)object->pid,
		[FD - VALUES] = (uint64_t)object->fd,
		[COUNT - VALUES] = object->count,
		[MAXIMUM - VALUES] = object->maximum,
		[RATE - VALUES] = object->rate,
		[BURST - VALUES] = object->capacity,
		[DEFERRED - VALUES] = object->deferred,
		[WATCHES - VALUES] = object->watches,
		[POSTS - VALUES] = object->posts,
		[MAX_ITEMS - VALUES] = object->max_items,
		[HEAD - VALUES] = object->head,
		[TAIL - VALUES] = object->tail,
		[PENDING - VALUES] = object_pending(object),
	};

	if (column < VALUES)
		return object_has(object, column, number);
	*number = numbers[column - VALUES];
	switch (column) {
	case MAXIMUM:
		return object->maximum != UINT64_MAX;
	case RATE:
	case BURST:
		return object->rate;
	case WATCHES:
	case POSTS:
		return !object->busy;
	default:
		return true;
	}
}

/* column_add - append a cell of a column, "-" if an object has nothing there */
void column_add(struct table *table, const struct object *object, unsigned int column)
{
	char command[ESCAPED_SIZE], duration[DURATION_SIZE];
	uint64_t number;

	if (column == COMMAND) {
		text_escape(command, sizeof(command), object->command);
		table_add(table, "%s", command);
	} else if (column == TYPE) {
		table_add(table, object->mapped	   ? "mapped" :
				 object->semaphore ? "semaphore" :
						     "count");
	} else if (!column_number(object, column, &number)) {
		table_add(table, column == WATCHES ? "busy" : "-");
	} else if (column == DEFERRED) {
		table_add(table, number ? "yes" : "-");
	} else if (column == OVERFLOW) {
		table_add(table, "%s", overflow_name(number));
	} else if (column == MAX_DELAY || column == WAIT_NS) {
		text_duration(duration, (double)number);
		table_add(table, "%s", duration);
	} else {
		table_add(table, "%" PRIu64, number);
	}
}
