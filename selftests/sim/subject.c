// SPDX-License-Identifier: GPL-2.0-only
/* The counter of a history: made, called and closed as a program does it. */
#include <inttypes.h>

#include "kernel.h"

#include <linux/flowfd.h>
#include "ends.h"
#include "eventfd.h"
#include "futex.h"
#include "program.h"
#include "subject.h"
#include "tasks.h"

/* The module's, whose own headers the simulator does not need. */
int flowfd_counter_init(void);
int flowfd_work_class_init(void);
long flowfd_counter_create(const void *argp, size_t size);

struct subject subject;

static struct file *file, nonblocking;
static struct vm_area_struct vma;
static struct mm_struct ended_mm;

/* Of a counter without the module. */
static struct eventfd_ctx eventfd;
static u64 eventfd_maximum;
static void *pages;

void subject_init(void)
{
	if (flowfd_work_class_init() || flowfd_counter_init())
		abort();
}

static void make_eventfd(u64 maximum, bool dying)
{
	eventfd_init(&eventfd, false);
	futex_begin();
	eventfd_maximum = maximum;
	pages = calloc(3, PAGE_SIZE);
	subject.no_poll = dying || sim_chance(3);
	subject.one_consumer = !subject.no_poll && sim_chance(3);
	subject.overflow = sim_chance(4) ? sim_random(4) : FLOWFD_OVERFLOW_WAIT;
	if (program_make(pages, maximum, subject.one_consumer, subject.no_poll,
			 subject.overflow))
		sim_fail("no doorbell");
}

static void make_counter(u64 maximum)
{
	struct flowfd_create_counter args = { .maximum = maximum };
	long fd;

	subject.semaphore = subject.store == IN_KERNEL && sim_chance(4);
	args.flags = (subject.store == IN_MEMORY ? FLOWFD_MAPPED : 0) |
		     (subject.semaphore ? FLOWFD_SEMAPHORE : 0);
	fd = flowfd_counter_create(&args, sizeof(args));
	file = fget(fd);
	nonblocking = *file;
	nonblocking.f_flags |= O_NONBLOCK;
	vma = (struct vm_area_struct){ .vm_flags = VM_SHARED, .vm_mm = &ended_mm };
	if (subject.store == IN_MEMORY) {
		file->f_op->mmap(file, &vma);
		program_map(vma.address);
	}
}

void subject_begin(enum store store, bool bridges, bool dying)
{
	u64 maximum = sim_chance(2) ? 2 + sim_random(12) : 0;

	sim_kernel_begin();
	subject = (struct subject){ .store = store };
	program_added = program_took = 0;
	if (store == WITHOUT_MODULE)
		make_eventfd(maximum ?: U64_MAX, dying);
	else
		make_counter(bridges && sim_chance(2) ? 0 : maximum);
	ends_begin(bridges);
}

void subject_end(void)
{
	if (subject.store == WITHOUT_MODULE) {
		free(pages);
		return;
	}
	if (file->f_op->flush)
		file->f_op->flush(file, NULL);
	file->f_op->release(NULL, file);
}

/* Calls. */
int subject_ioctl(unsigned int request, void *argument)
{
	return file->f_op->unlocked_ioctl(file, request, (unsigned long)argument);
}

static int write_by_call(u64 value, u64 timeout, bool nonblock, bool urgent)
{
	struct flowfd_transfer args = {
		.value = value,
		.timeout = timeout,
		.flags = (nonblock ? FLOWFD_NONBLOCK : 0) | (urgent ? FLOWFD_URGENT : 0),
	};
	struct kiocb iocb = { .ki_filp = file, .ki_flags = nonblock ? IOCB_NOWAIT : 0 };
	struct iov_iter iter = { value, sizeof(value) };
	struct file *f = nonblock ? &nonblocking : file;

	if (timeout || urgent || sim_chance(3))
		return subject_ioctl(FLOWFD_IOC_COUNTER_WRITE, &args);
	if (sim_chance(4))
		return min(file->f_op->write_iter(&iocb, &iter), (ssize_t)0);
	return min(file->f_op->write(f, (char *)&value, sizeof(value), NULL), (ssize_t)0);
}

static int read_by_call(u64 *value, u64 timeout, bool nonblock)
{
	struct flowfd_transfer args = {
		.timeout = timeout,
		.flags = nonblock ? FLOWFD_NONBLOCK : 0,
	};
	struct kiocb iocb = { .ki_filp = file, .ki_flags = nonblock ? IOCB_NOWAIT : 0 };
	struct iov_iter iter = { 0, sizeof(*value) };
	struct file *f = nonblock ? &nonblocking : file;
	ssize_t ret;

	if (timeout || sim_chance(3)) {
		ret = subject_ioctl(FLOWFD_IOC_COUNTER_READ, &args);
		*value = args.value;
		return ret;
	}
	if (sim_chance(4)) {
		ret = file->f_op->read_iter(&iocb, &iter);
		*value = iter.value;
		return min(ret, (ssize_t)0);
	}
	return min(file->f_op->read(f, (char *)value, sizeof(*value), NULL), (ssize_t)0);
}

int subject_write(u64 value, u64 timeout, bool nonblock, bool urgent)
{
	int err = write_by_call(value, timeout, nonblock, urgent);

	if (!err)
		subject.added += value;
	return err;
}

int subject_read(u64 *value, u64 timeout, bool nonblock)
{
	int err = read_by_call(value, timeout, nonblock);

	if (!err)
		subject.took += *value;
	return err;
}

int subject_notify(void)
{
	return subject_ioctl(FLOWFD_IOC_COUNTER_NOTIFY, NULL);
}

const char *subject_fdinfo(void)
{
	static char text[4096];
	struct seq_file m = { .buf = text, .size = sizeof(text) };

	file->f_op->show_fdinfo(&m, file);
	return text;
}

static bool uses_memory(void)
{
	return subject.store == WITHOUT_MODULE ||
	       (subject.store == IN_MEMORY && sim_random(4));
}

static int add(u64 value, u64 timeout, bool nonblock)
{
	u64 began = sim_steps;
	int err;

	sim_note("add %" PRIu64 "%s", value, nonblock ? "" : ", may wait");
	if (uses_memory())
		err = program_add(value, timeout, nonblock);
	else
		err = subject_write(value, timeout, nonblock, sim_chance(6));
	sim_note("add %" PRIu64 ": %d", value, err);
	if (!err && subject.last_add < began)
		subject.last_add = began;
	/* It was added, and nobody could be told: its process has closed the descriptor. */
	if (!err || err == -EPERM)
		subject.accepted += value;
	return err;
}

static int take(u64 *value, u64 timeout, bool nonblock)
{
	int err;

	sim_note("take%s", nonblock ? "" : ", may wait");
	*value = 0;
	if (uses_memory())
		err = program_take(value, timeout, nonblock);
	else
		err = subject_read(value, timeout, nonblock);
	sim_note("take: %d, %" PRIu64, err, *value);
	if (!err && !*value)
		sim_fail("took nothing");
	return err;
}

bool subject_add(u64 value)
{
	return !add(value, 0, true);
}

bool subject_take(void)
{
	u64 value;

	return !take(&value, 0, true);
}

int subject_add_waiting(u64 value, u64 timeout)
{
	return add(value, timeout, false);
}

int subject_take_waiting(u64 timeout)
{
	u64 value;

	return take(&value, timeout, false);
}

/* Pollers. */
__poll_t subject_poll(poll_table *wait)
{
	return subject.store == WITHOUT_MODULE ? eventfd_poll(&eventfd, wait) :
						 file->f_op->poll(file, wait);
}

int subject_eventfd_add(u64 value)
{
	return eventfd_add(&eventfd, value);
}

int subject_eventfd_take(u64 *value)
{
	return eventfd_take(&eventfd, value);
}

/* Settings. */
void subject_get(struct flowfd_flow *flow)
{
	if (subject.store != WITHOUT_MODULE) {
		subject_ioctl(FLOWFD_IOC_GET_FLOW, flow);
		return;
	}
	*flow = (struct flowfd_flow){
		.maximum = eventfd_maximum,
		.read_mark = 1,
		.write_mark = 1,
		.overflow = subject.overflow,
		.count = program_count(),
	};
}

static void set_flow(const struct flowfd_flow *now)
{
	static const u32 rates[] = { 0, 0, 0, 0, 300, 2000, 100000, 1000000 };
	struct flowfd_flow f = { .maximum = sim_chance(3) ? 0 :
						    now->count + 1 + sim_random(20) };
	u64 limit = f.maximum ?: 30;
	int err;

	if (!subject.semaphore) {
		f.qos.token_rate = rates[sim_random(ARRAY_SIZE(rates))];
		f.qos.token_capacity = 1 + sim_random(3);
		f.read_mark = sim_chance(2) ? 0 : sim_random(limit);
		if (f.read_mark > 1 || sim_chance(3))
			f.max_delay = sim_random(3) ? 1000 + sim_random(5000000) : 0;
	}
	f.write_mark = sim_chance(2) ? 0 : sim_random(limit);
	f.overflow = sim_random(4) ? FLOWFD_OVERFLOW_WAIT : sim_random(4);
	err = subject_ioctl(FLOWFD_IOC_SET_FLOW, &f);
	if (err && file->f_op->mmap) {
		/* A mapped counter has neither marks nor delay. */
		f.read_mark = f.write_mark = f.max_delay = 0;
		err = subject_ioctl(FLOWFD_IOC_SET_FLOW, &f);
	}
	if (!err)
		subject.marks |= f.read_mark > 1 || f.qos.token_rate;
}

void subject_set_randomly(void)
{
	struct flowfd_flow now;
	struct eventfd_qos qos;
	u64 maximum;

	if (subject.store == WITHOUT_MODULE)
		return;
	subject_get(&now);
	switch (sim_random(4)) {
	case 0:
		maximum = now.count + 1 + sim_random(20);
		subject_ioctl(EFD_IOC_SET_MAXIMUM, &maximum);
		break;
	case 1:
		qos = (struct eventfd_qos){ 1, sim_chance(2) ? 0 : 1000 };
		if (!subject_ioctl(EFD_IOC_SET_QOS, &qos))
			subject.marks |= qos.token_rate;
		break;
	default:
		set_flow(&now);
	}
}

void subject_die(void)
{
	sim_note("dies");
	if (subject.store != WITHOUT_MODULE) {
		current->flags |= PF_EXITING;
		vma.vm_ops->close(&vma);
		file->f_op->flush(file, NULL);
	}
	tasks_one_ended();
	sim_exit();
}
