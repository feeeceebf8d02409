// SPDX-License-Identifier: MIT
/*
 * flowfd._flowfd: a counter of libflowfd as a type of Python, in the stable ABI.
 *
 * What cannot wait is done with the GIL held: to release it costs more than an add in
 * memory, and lets other threads run. What may wait is tried so first, and then done without
 * the GIL. Then @users keeps the memory from being unmapped.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

struct object {
	PyObject_HEAD
	struct flowfd_counter counter;
	bool is_open;
	bool one_consumer;
	unsigned int users; /* calls without the GIL */
};

#define NEVER	   UINT64_MAX
#define NANOSECOND 1000000000ULL

/* A call ended with an exception that was set. */
#define RAISED 1

static PyObject *raise_error(int result)
{
	PyObject *arguments;

	if (result == RAISED)
		return NULL;
	arguments = Py_BuildValue("(is)", -result, flowfd_strerror(result));
	if (arguments) {
		/* The subclass of OSError that the number has. */
		PyErr_SetObject(PyExc_OSError, arguments);
		Py_DECREF(arguments);
	}
	return NULL;
}

static PyObject *none_or_error(int result)
{
	if (result)
		return raise_error(result);
	Py_RETURN_NONE;
}

static struct flowfd_counter *counter_of(PyObject *self)
{
	struct object *object = (struct object *)self;

	if (object->is_open)
		return &object->counter;
	PyErr_SetString(PyExc_ValueError, "operation on a closed counter");
	return NULL;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * NANOSECOND + time.tv_nsec;
}

/* None: never. Returns 0 or RAISED. */
static int deadline_of(PyObject *timeout, uint64_t *deadline)
{
	double seconds;

	*deadline = NEVER;
	if (!timeout || timeout == Py_None)
		return 0;
	seconds = PyFloat_AsDouble(timeout);
	if (PyErr_Occurred())
		return RAISED;
	if (!(seconds >= 0)) {
		PyErr_SetString(PyExc_ValueError, "timeout must not be negative");
		return RAISED;
	}
	/* A century is for ever. */
	if (seconds < 3e9)
		*deadline = now() + (uint64_t)ceil(seconds * NANOSECOND);
	return 0;
}

/* A signal's handler in Python is to run (PEP 475), and may close the counter. */
static bool may_repeat(struct object *object)
{
	return !PyErr_CheckSignals() && counter_of((PyObject *)object);
}

/* The library may wait. Returns an error of it, or RAISED. */
static int wait_for(struct object *object, bool adds, uint64_t *value, uint64_t deadline)
{
	struct flowfd_counter *c = &object->counter;
	uint64_t left = 0, time;
	int ret;

	do {
		if (deadline != NEVER) {
			time = now();
			if (time >= deadline)
				return -ETIMEDOUT;
			left = deadline - time;
		}
		object->users++;
		Py_BEGIN_ALLOW_THREADS
		if (adds)
			ret = flowfd_add_with(c, *value, left, 0);
		else
			ret = flowfd_take_with(c, value, left, 0);
		Py_END_ALLOW_THREADS
		object->users--;
		if (ret == -EINTR && !may_repeat(object))
			return RAISED;
	} while (ret == -EINTR);
	return ret;
}

/*
 * A call that does not wait can be interrupted too, and has done nothing then. It is made
 * again at once: the interpreter runs a signal's handler later, and whom the add was to wake
 * is not woken if it is left out.
 */
static int add_at_once(const struct flowfd_counter *c, uint64_t value)
{
	int ret;

	do {
		ret = flowfd_add_with(c, value, 0, FLOWFD_NONBLOCK);
	} while (ret == -EINTR);
	return ret;
}

static int take_at_once(const struct flowfd_counter *c, uint64_t *value)
{
	int ret;

	do {
		ret = flowfd_try_take(c, value);
	} while (ret == -EINTR);
	return ret;
}

/* A semaphore without the module is an eventfd, which cannot say whether it would wait. */
static bool may_wait(int result)
{
	return result == -EAGAIN || result == -EOPNOTSUPP;
}

/* value=1, /, *, timeout=None, or without a value. Returns 0 or RAISED. */
static int parse(PyObject *const *arguments, Py_ssize_t count, PyObject *names,
		 uint64_t *value, PyObject **timeout)
{
	Py_ssize_t named = names ? PyTuple_Size(names) : 0;
	Py_ssize_t most = value ? 1 : 0;

	if (count > most) {
		PyErr_Format(PyExc_TypeError, "expected at most %zd positional arguments",
			     most);
		return RAISED;
	}
	if (count)
		*value = PyLong_AsUnsignedLongLong(arguments[0]);
	if (PyErr_Occurred())
		return RAISED;
	for (Py_ssize_t i = 0; i < named; i++) {
		PyObject *name = PyTuple_GetItem(names, i);

		if (!PyUnicode_CompareWithASCIIString(name, "timeout")) {
			*timeout = arguments[count + i];
		} else {
			PyErr_Format(PyExc_TypeError, "unexpected argument '%U'", name);
			return RAISED;
		}
	}
	return 0;
}

static PyObject *add(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
		     PyObject *names)
{
	PyObject *timeout = NULL;
	struct flowfd_counter *c;
	uint64_t value = 1, deadline;
	int ret;

	if (parse(arguments, count, names, &value, &timeout) ||
	    deadline_of(timeout, &deadline))
		return NULL;
	/* Last: __float__() of the timeout may close it. */
	c = counter_of(self);
	if (!c)
		return NULL;
	ret = add_at_once(c, value);
	if (may_wait(ret))
		ret = wait_for((struct object *)self, true, &value, deadline);
	return none_or_error(ret);
}

static PyObject *try_add(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
			 PyObject *names)
{
	struct flowfd_counter *c = counter_of(self);
	PyObject *timeout = NULL;
	uint64_t value = 1;
	int ret;

	if (!c || parse(arguments, count, names, &value, &timeout))
		return NULL;
	if (timeout) {
		PyErr_SetString(PyExc_TypeError, "unexpected argument 'timeout'");
		return NULL;
	}
	ret = add_at_once(c, value);
	if (ret && ret != -EAGAIN)
		return raise_error(ret);
	return PyBool_FromLong(!ret);
}

static PyObject *take(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
		      PyObject *names)
{
	PyObject *timeout = NULL;
	struct flowfd_counter *c;
	uint64_t value, deadline;
	int ret;

	if (parse(arguments, count, names, NULL, &timeout) ||
	    deadline_of(timeout, &deadline))
		return NULL;
	/* Last: __float__() of the timeout may close it. */
	c = counter_of(self);
	if (!c)
		return NULL;
	ret = take_at_once(c, &value);
	if (may_wait(ret))
		ret = wait_for((struct object *)self, false, &value, deadline);
	return ret ? raise_error(ret) : PyLong_FromUnsignedLongLong(value);
}

static PyObject *try_take(PyObject *self, PyObject *unused)
{
	struct flowfd_counter *c = counter_of(self);
	uint64_t value;
	int ret;

	(void)unused;
	if (!c)
		return NULL;
	ret = take_at_once(c, &value);
	if (ret == -EAGAIN)
		Py_RETURN_NONE;
	return ret ? raise_error(ret) : PyLong_FromUnsignedLongLong(value);
}

static PyObject *fileno_of(PyObject *self, PyObject *unused)
{
	struct flowfd_counter *c = counter_of(self);

	(void)unused;
	return c ? PyLong_FromLong(c->fd) : NULL;
}

/*
 * Closes all but the descriptor, and returns it: an event loop that watches it must forget
 * it first. None: the counter is closed.
 */
static PyObject *detach(PyObject *self, PyObject *unused)
{
	struct object *object = (struct object *)self;
	int fd = object->counter.fd;

	(void)unused;
	if (object->users)
		return raise_error(-EBUSY);
	if (!object->is_open)
		Py_RETURN_NONE;
	flowfd_counter_unmap(&object->counter);
	object->counter.fd = -1;
	object->is_open = false;
	return PyLong_FromLong(fd);
}

static PyObject *get_flow(PyObject *self, uint64_t (*field)(const struct flowfd_flow *))
{
	struct flowfd_counter *c = counter_of(self);
	struct flowfd_flow flow;
	int ret;

	if (!c)
		return NULL;
	ret = flowfd_counter_get_flow(c, &flow, sizeof(flow));
	return ret ? raise_error(ret) : PyLong_FromUnsignedLongLong(field(&flow));
}

static uint64_t count_of(const struct flowfd_flow *flow)
{
	return flow->count;
}

static uint64_t lost_of(const struct flowfd_flow *flow)
{
	return flow->lost;
}

static PyObject *get_count(PyObject *self, void *unused)
{
	(void)unused;
	return get_flow(self, count_of);
}

static PyObject *get_lost(PyObject *self, void *unused)
{
	(void)unused;
	return get_flow(self, lost_of);
}

static PyObject *get_closed(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(!((struct object *)self)->is_open);
}

static PyObject *get_one_consumer(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct object *)self)->one_consumer);
}

static PyObject *get_mapped(PyObject *self, void *unused)
{
	struct flowfd_counter *c = counter_of(self);

	(void)unused;
	return c ? PyBool_FromLong(flowfd_counter_is_mapped(c)) : NULL;
}

static PyObject *get_features(PyObject *self, void *unused)
{
	struct flowfd_counter *c = counter_of(self);

	(void)unused;
	return c ? PyLong_FromUnsignedLong(flowfd_features(c)) : NULL;
}

/* "I" of PyArg_ParseTuple() takes what does not fit without an error. */
static int word_of(PyObject *item, const char *name, __u32 *word)
{
	PyObject *number = PyNumber_Index(item);
	unsigned long long value;

	if (!number)
		return RAISED;
	value = PyLong_AsUnsignedLongLong(number);
	Py_DECREF(number);
	if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError))
		return RAISED;
	if (PyErr_Occurred() || value > UINT32_MAX) {
		PyErr_Format(PyExc_OverflowError,
			     "the %s of a bucket must be from 0 to 4294967295", name);
		return RAISED;
	}
	*word = (__u32)value;
	return 0;
}

/* None: none. Returns 0 or RAISED. */
static int bucket_of(PyObject *bucket, struct eventfd_qos *qos)
{
	if (bucket == Py_None)
		return 0;
	if (!PyTuple_Check(bucket) || PyTuple_Size(bucket) != 2) {
		PyErr_SetString(PyExc_TypeError, "bucket must be a tuple (capacity, rate)");
		return RAISED;
	}
	if (word_of(PyTuple_GetItem(bucket, 0), "capacity", &qos->token_capacity))
		return RAISED;
	return word_of(PyTuple_GetItem(bucket, 1), "rate", &qos->token_rate);
}

/* "K" of PyArg_ParseTuple() takes what does not fit without an error. */
static int number_of(PyObject *number, __u64 *value)
{
	if (number && number != Py_None)
		*value = PyLong_AsUnsignedLongLong(number);
	return PyErr_Occurred() ? RAISED : 0;
}

#define POLICIES 4

/* The number of an overflow policy; POLICIES: there is none of this name. */
static unsigned int policy_of(const char *name)
{
	static const char *const names[POLICIES] = {
		[FLOWFD_OVERFLOW_WAIT] = "wait",
		[FLOWFD_OVERFLOW_FAIL] = "fail",
		[FLOWFD_OVERFLOW_SATURATE] = "saturate",
		[FLOWFD_OVERFLOW_DROP] = "drop",
	};
	unsigned int number = 0;

	while (number < POLICIES && strcmp(names[number], name))
		number++;
	return number;
}

static int initialise(PyObject *self, PyObject *arguments, PyObject *names)
{
	static char *keywords[] = { "initial",	"maximum",	   "semaphore",	   "nonblock",
				    "bucket",	"optional_bucket", "one_consumer", "fallback",
				    "overflow", "no_poll",	   NULL };
	int semaphore = 0, nonblock = 0, optional = 0, one_consumer = 0, fallback = 1;
	const char *overflow = "wait";
	int no_poll = 0;
	struct object *object = (struct object *)self;
	struct flowfd_create_counter settings = { 0 };
	struct flowfd_flow flow = { .set = FLOWFD_SET_OVERFLOW };
	PyObject *initial = NULL, *maximum = NULL, *bucket = Py_None;
	unsigned int options;
	int ret;

	if (!PyArg_ParseTupleAndKeywords(arguments, names, "|O$OppOpppsp", keywords, &initial,
					 &maximum, &semaphore, &nonblock, &bucket, &optional,
					 &one_consumer, &fallback, &overflow, &no_poll))
		return -1;
	if (semaphore && one_consumer) {
		PyErr_SetString(PyExc_ValueError, "a semaphore has many consumers");
		return -1;
	}
	flow.overflow = policy_of(overflow);
	if (flow.overflow == POLICIES) {
		PyErr_Format(PyExc_ValueError, "unknown overflow '%s'", overflow);
		return -1;
	}
	if (number_of(initial, &settings.initial) || number_of(maximum, &settings.maximum) ||
	    bucket_of(bucket, &settings.qos))
		return -1;
	/* Last: __index__() and __bool__() of what was given may open it. */
	if (object->is_open) {
		PyErr_SetString(PyExc_ValueError, "the counter is open");
		return -1;
	}
	settings.flags = (semaphore ? FLOWFD_SEMAPHORE : 0) |
			 (nonblock ? FLOWFD_NONBLOCK : 0);
	options = (fallback ? FLOWFD_FALLBACK : 0) |
		  (optional ? FLOWFD_OPTIONAL_BUCKET : 0) |
		  (one_consumer ? FLOWFD_ONE_CONSUMER : 0) | (no_poll ? FLOWFD_NO_POLL : 0);
	ret = flowfd_counter_open(&object->counter, &settings, sizeof(settings), options);
	if (!ret && flow.overflow != FLOWFD_OVERFLOW_WAIT) {
		ret = flowfd_counter_set_flow(&object->counter, &flow, sizeof(flow));
		if (ret)
			flowfd_counter_close(&object->counter);
	}
	if (ret) {
		raise_error(ret);
		return -1;
	}
	object->is_open = true;
	object->one_consumer = one_consumer;
	return 0;
}

/* A sequence of descriptors. Returns their number, or -1. */
static int descriptors_of(PyObject *sequence, int fds[FLOWFD_EXPORT_MAX])
{
	Py_ssize_t count = PySequence_Size(sequence);

	if (count < 0)
		return -1;
	if (count > FLOWFD_EXPORT_MAX) {
		raise_error(-EINVAL);
		return -1;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *item = PySequence_GetItem(sequence, i);

		fds[i] = item ? PyObject_AsFileDescriptor(item) : -1;
		Py_XDECREF(item);
		if (fds[i] < 0)
			return -1;
	}
	return (int)count;
}

/*
 * An object that is closed. Not by the class's __new__(), which may return any object: of
 * another type, or one that is open.
 */
static PyObject *create_closed(PyObject *class)
{
	PyTypeObject *type = (PyTypeObject *)class;
	allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

	return allocate(type, 0);
}

/* A class method: a counter of descriptors, which are its own then. */
static PyObject *from_descriptors(PyObject *class, PyObject *arguments, PyObject *names)
{
	static char *keywords[] = { "", "one_consumer", NULL };
	PyObject *sequence, *self;
	int fds[FLOWFD_EXPORT_MAX];
	struct object *object;
	int count, ret, one_consumer = 0;

	if (!PyArg_ParseTupleAndKeywords(arguments, names, "O|$p", keywords, &sequence,
					 &one_consumer))
		return NULL;
	count = descriptors_of(sequence, fds);
	if (count < 0)
		return NULL;
	self = create_closed(class);
	if (!self)
		return NULL;
	object = (struct object *)self;
	ret = flowfd_counter_import(&object->counter, fds, (unsigned int)count);
	if (ret) {
		Py_DECREF(self);
		return raise_error(ret);
	}
	object->is_open = true;
	object->one_consumer = one_consumer;
	return self;
}

static PyObject *descriptors(PyObject *self, PyObject *unused)
{
	struct flowfd_counter *c = counter_of(self);
	int fds[FLOWFD_EXPORT_MAX];
	int count;

	(void)unused;
	if (!c)
		return NULL;
	count = flowfd_counter_export(c, fds);
	if (count < 0)
		return raise_error(count);
	return count == 1 ? Py_BuildValue("(i)", fds[0]) :
			    Py_BuildValue("(ii)", fds[0], fds[1]);
}

static PyObject *share(PyObject *self, PyObject *unused)
{
	struct object *object = (struct object *)self;
	struct flowfd_counter *c = counter_of(self);
	struct flowfd_key key;
	int ret;

	(void)unused;
	if (!c)
		return NULL;
	/* It may wait for random numbers, just after boot. */
	do {
		object->users++;
		Py_BEGIN_ALLOW_THREADS
		ret = flowfd_share(c->fd, &key);
		Py_END_ALLOW_THREADS
		object->users--;
		if (ret == -EINTR && !may_repeat(object))
			return NULL;
	} while (ret == -EINTR);
	return ret ? raise_error(ret) :
		     PyBytes_FromStringAndSize((const char *)&key, sizeof(key));
}

static int map_key(struct flowfd_counter *c, const char *bytes)
{
	struct flowfd_key key;
	int fd, ret;

	memcpy(&key, bytes, sizeof(key));
	fd = flowfd_open_shared(&key, 0);
	if (fd < 0)
		return fd;
	ret = flowfd_counter_map(c, fd, FLOWFD_PRODUCER | FLOWFD_CONSUMER);
	if (ret)
		close(fd);
	return ret;
}

/* A class method: a counter that has a key. */
static PyObject *open_shared(PyObject *class, PyObject *argument)
{
	struct object *object;
	Py_ssize_t length;
	PyObject *self;
	char *bytes;
	int ret;

	if (PyBytes_AsStringAndSize(argument, &bytes, &length))
		return NULL;
	if (length != sizeof(struct flowfd_key)) {
		PyErr_Format(PyExc_ValueError, "a key has %zd bytes",
			     (Py_ssize_t)sizeof(struct flowfd_key));
		return NULL;
	}
	self = create_closed(class);
	if (!self)
		return NULL;
	object = (struct object *)self;
	ret = map_key(&object->counter, bytes);
	if (ret) {
		Py_DECREF(self);
		return raise_error(ret);
	}
	object->is_open = true;
	return self;
}

static void finish(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	struct object *object = (struct object *)self;

	if (object->is_open)
		flowfd_counter_close(&object->counter);
	release(self);
	Py_DECREF(type);
}

#define FAST (METH_FASTCALL | METH_KEYWORDS)

static PyMethodDef methods[] = {
	{ "add", (PyCFunction)(void (*)(void))add, FAST,
	  "add($self, value=1, /, *, timeout=None)\n--\n\n"
	  "Add to the count. Wait until there is room, or raise TimeoutError.\n\n"
	  "OSError (EPERM) says that the value was added, but nobody could be told. After any\n"
	  "other error nothing was added, also after EACCES, which is a PermissionError as well:\n"
	  "so compare the errno." },
	{ "try_add", (PyCFunction)(void (*)(void))try_add, FAST,
	  "try_add($self, value=1, /)\n--\n\n"
	  "Add to the count if there is room; say whether there was. Errors are those of add()." },
	{ "take", (PyCFunction)(void (*)(void))take, FAST,
	  "take($self, /, *, timeout=None)\n--\n\n"
	  "Take the count, which is 0 then. Wait until there is one, or raise TimeoutError." },
	{ "try_take", try_take, METH_NOARGS,
	  "try_take($self, /)\n--\n\n"
	  "Take the count, or None if there is none." },
	{ "fileno", fileno_of, METH_NOARGS,
	  "fileno($self, /)\n--\n\n"
	  "The descriptor, which can be polled, and stays the counter's." },
	{ "_detach", detach, METH_NOARGS,
	  "_detach($self, /)\n--\n\n"
	  "Close all but the descriptor, and return it, or None." },
	{ "descriptors", descriptors, METH_NOARGS,
	  "descriptors($self, /)\n--\n\n"
	  "What makes the counter, to be sent to another process; they stay the counter's." },
	{ "from_descriptors", (PyCFunction)(void (*)(void))from_descriptors,
	  METH_VARARGS | METH_KEYWORDS | METH_CLASS,
	  "from_descriptors($type, fds, /, *, one_consumer=False)\n--\n\n"
	  "A counter of another process; the descriptors are its own then. Neither __new__()\n"
	  "nor __init__() of a subclass is called. Receive them by recvmsg() of a socket with\n"
	  "MSG_CMSG_CLOEXEC: otherwise programs that are started get them, too. recv_fds() does\n"
	  "not pass it on.\n\n"
	  "one_consumer: whether it was made so. The descriptors do not say it, so the caller\n"
	  "must know: of several tasks that wait for such a counter, one could wait for ever.\n"
	  "With it take_async() refuses the second." },
	{ "share", share, METH_NOARGS,
	  "share($self, /)\n--\n\n"
	  "The key of the counter, 24 bytes, for open_shared() in another process.\n\n"
	  "It can lie in shared memory or in a file, and must be kept as a password is. Without\n"
	  "the module there are none: OSError (ENOTTY)." },
	{ "open_shared", open_shared, METH_O | METH_CLASS,
	  "open_shared($type, key, /)\n--\n\n"
	  "The counter of another process that has this key. Neither __new__() nor __init__() of\n"
	  "a subclass is called.\n\n"
	  "FileNotFoundError if there is none, or not in this user namespace. Without the module\n"
	  "OSError (ENODEV)." },
	{ 0 },
};

static PyGetSetDef attributes[] = {
	{ "closed", get_closed, NULL, "Whether it is closed.", NULL },
	{ "mapped", get_mapped, NULL, "Whether adds and takes are in memory.", NULL },
	{ "one_consumer", get_one_consumer, NULL, "As it was made, or as from_descriptors() was told.", NULL },
	{ "count", get_count, NULL, "The count, which others may change meanwhile.", NULL },
	{ "lost", get_lost, NULL, "What was lost by overflow='saturate' or 'drop'.", NULL },
	{ "features", get_features, NULL, "HAS_* bits.", NULL },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "A counter. flowfd.Counter is the class to use." },
	{ Py_tp_init, initialise },
	{ Py_tp_dealloc, finish },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, attributes },
	{ 0 },
};

static PyType_Spec counter_spec = {
	.name = "flowfd._flowfd.Counter",
	.basicsize = sizeof(struct object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = slots,
};

static const struct {
	const char *name;
	long value;
} constants[] = {
	{ "HAS_MEMORY", FLOWFD_HAS_MEMORY },   { "HAS_CALLS", FLOWFD_HAS_CALLS },
	{ "HAS_MAXIMUM", FLOWFD_HAS_MAXIMUM }, { "HAS_BUCKET", FLOWFD_HAS_BUCKET },
	{ "HAS_FLOW", FLOWFD_HAS_FLOW },       { "HAS_OVERFLOW", FLOWFD_HAS_OVERFLOW },
	{ "HAS_POLL", FLOWFD_HAS_POLL },
};

static int execute(PyObject *module)
{
	PyObject *type = PyType_FromModuleAndSpec(module, &counter_spec, NULL);

	if (!type)
		return -1;
	if (PyModule_AddObject(module, "Counter", type)) {
		Py_DECREF(type);
		return -1;
	}
	for (size_t i = 0; i < sizeof(constants) / sizeof(*constants); i++)
		if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value))
			return -1;
	return PyModule_AddStringConstant(module, "library_version", flowfd_version());
}

static PyModuleDef_Slot module_slots[] = {
	{ Py_mod_exec, execute },
	{ 0 },
};

static PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "flowfd._flowfd",
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__flowfd(void)
{
	return PyModuleDef_Init(&module);
}
