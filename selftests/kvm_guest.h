/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest of KVM that halts, counts interrupts of an irqfd, and answers each by a write to
 * a port, which an ioeventfd can take. Neither needs an exit to user space.
 */
#ifndef KVM_GUEST_H
#define KVM_GUEST_H

#include <linux/kvm.h>

#include "selftest.h"

#define GUEST_MEMORY 0x10000
#define GUEST_CODE 0x1000
#define GUEST_STACK 0x7000
#define GUEST_WORDS 0x8000
#define GUEST_IRQ 5
#define GUEST_PORT 0xe0

/*
 * What guest and test share, at GUEST_WORDS. Whoever raises an interrupt counts in @made
 * first: an interrupt is lost if @seen does not become the same.
 */
struct guest_words {
	__u32 ready;
	__u32 made;
	__u32 seen;
	__u32 interrupts;
};

struct kvm_guest {
	int vm;
	int vcpu;
	struct kvm_run *run;
	size_t run_size;
	char *memory;
	struct guest_words *words;
	pthread_t thread;
	bool stop;
	__u32 exit_reason;	/* of an exit that nobody expected; 0: none */
};

#ifdef __x86_64__

#include <cpuid.h>

/*
 * In real mode. The interrupt controller is told that its vectors begin at 0x20, and to
 * raise only that of GUEST_IRQ.
 */
extern const char guest_code[], guest_handler[], guest_code_end[];

asm(".pushsection .rodata\n"
    ".code16\n"
    "guest_code:\n"
    "	cli\n"
    "	mov $0x11, %al\n"
    "	out %al, $0x20\n"
    "	mov $0x20, %al\n"
    "	out %al, $0x21\n"
    "	mov $0x04, %al\n"
    "	out %al, $0x21\n"
    "	mov $0x01, %al\n"
    "	out %al, $0x21\n"
    "	mov $0xdf, %al\n"
    "	out %al, $0x21\n"
    "	movl $1, 0x8000\n"
    "1:	sti\n"
    "	hlt\n"
    "	jmp 1b\n"
    "guest_handler:\n"
    "	mov 0x8004, %eax\n"
    "	mov %eax, 0x8008\n"
    "	incl 0x800c\n"
    "	mov $0x20, %al\n"
    "	out %al, $0x20\n"
    "	out %al, $0xe0\n"
    "	iret\n"
    "guest_code_end:\n"
    ".code64\n"
    ".popsection\n");

static inline void guest_write_memory(struct kvm_guest *g)
{
	__u16 *vector = (__u16 *)(g->memory + 4 * (0x20 + GUEST_IRQ));

	memcpy(g->memory + GUEST_CODE, guest_code, guest_code_end - guest_code);
	vector[0] = GUEST_CODE + (guest_handler - guest_code);
	vector[1] = 0;
	g->words = (struct guest_words *)(g->memory + GUEST_WORDS);
}

static inline bool guest_set_registers(struct kvm_guest *g)
{
	struct kvm_regs regs = { .rip = GUEST_CODE, .rsp = GUEST_STACK, .rflags = 2 };
	struct kvm_sregs sregs;

	if (ioctl(g->vcpu, KVM_GET_SREGS, &sregs))
		return false;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	return !ioctl(g->vcpu, KVM_SET_SREGS, &sregs) &&
	       !ioctl(g->vcpu, KVM_SET_REGS, &regs);
}

/* What it writes to its port comes here if there is no ioeventfd. */
static inline bool guest_exit_is_expected(struct kvm_guest *g, int result)
{
	return result ? errno == EINTR : g->run->exit_reason == KVM_EXIT_IO;
}

static inline void *guest_run(void *arg)
{
	struct kvm_guest *g = arg;

	while (!__atomic_load_n(&g->stop, __ATOMIC_ACQUIRE)) {
		if (guest_exit_is_expected(g, ioctl(g->vcpu, KVM_RUN, 0)))
			continue;
		g->exit_reason = g->run->exit_reason;
		break;
	}
	return NULL;
}

/* A signal that comes before KVM_RUN would not end it; @immediate_exit does. */
static inline void guest_stop(struct kvm_guest *g)
{
	if (!g->thread)
		return;
	__atomic_store_n(&g->run->immediate_exit, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&g->stop, true, __ATOMIC_RELEASE);
	pthread_kill(g->thread, SIGUSR1);
	pthread_join(g->thread, NULL);
	g->thread = 0;
}

static inline bool guest_is_ready(struct kvm_guest *g)
{
	__u64 until = ms_from_now(PATIENCE_MS);

	while (!__atomic_load_n(&g->words->ready, __ATOMIC_ACQUIRE)) {
		if (now_ns() > until)
			return false;
		sleep_ms(1);
	}
	return true;
}

/* What there is of it is for guest_close(), also if this fails. */
static inline bool guest_make(struct kvm_guest *g, int kvm)
{
	struct kvm_userspace_memory_region region = { .memory_size = GUEST_MEMORY };

	g->vm = ioctl(kvm, KVM_CREATE_VM, 0);
	if (g->vm < 0)
		return false;
	/* Three pages that Intel's processors want below 4 GB. */
	ioctl(g->vm, KVM_SET_TSS_ADDR, 0xfffbd000);
	if (ioctl(g->vm, KVM_CREATE_IRQCHIP))
		return false;
	g->vcpu = ioctl(g->vm, KVM_CREATE_VCPU, 0);
	if (g->vcpu < 0)
		return false;
	g->run_size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	g->run = mmap(NULL, g->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, g->vcpu, 0);
	g->memory = mmap(NULL, GUEST_MEMORY, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g->run == MAP_FAILED || g->memory == MAP_FAILED)
		return false;
	guest_write_memory(g);
	region.userspace_addr = (unsigned long)g->memory;
	return !ioctl(g->vm, KVM_SET_USER_MEMORY_REGION, &region) &&
	       guest_set_registers(g);
}

static inline void guest_init(struct kvm_guest *g)
{
	*g = (struct kvm_guest){
		.vm = -1, .vcpu = -1, .run = MAP_FAILED, .memory = MAP_FAILED,
	};
}

/* Returns when it takes interrupts. */
static inline bool guest_open(struct kvm_guest *g, int kvm)
{
	guest_init(g);
	catch_signal(0);
	return guest_make(g, kvm) &&
	       !pthread_create(&g->thread, NULL, guest_run, g) && guest_is_ready(g);
}

/* 0, or the reason of an exit that nobody expected. */
static inline __u32 guest_close(struct kvm_guest *g)
{
	guest_stop(g);
	if (g->memory != MAP_FAILED)
		munmap(g->memory, GUEST_MEMORY);
	if (g->run != MAP_FAILED)
		munmap(g->run, g->run_size);
	close(g->vcpu);
	close(g->vm);
	return g->exit_reason;
}

static inline long guest_irqfd(struct kvm_guest *g, int eventfd, __u32 flags)
{
	struct kvm_irqfd args = { .fd = eventfd, .gsi = GUEST_IRQ, .flags = flags };

	return result_of(ioctl(g->vm, KVM_IRQFD, &args));
}

static inline long guest_ioeventfd(struct kvm_guest *g, int eventfd, __u32 flags)
{
	struct kvm_ioeventfd args = {
		.addr = GUEST_PORT,
		.len = 1,
		.fd = eventfd,
		.flags = KVM_IOEVENTFD_FLAG_PIO | flags,
	};

	return result_of(ioctl(g->vm, KVM_IOEVENTFD, &args));
}

/* Whether QEMU emulates this processor. */
static inline bool processor_is_emulated(void)
{
	unsigned int eax, name[3];

	__cpuid(0x40000000, eax, name[0], name[1], name[2]);
	return !memcmp(name, "TCGTCGTCGTCG", sizeof(name));
}

/*
 * KVM changes the kernel's code for each machine. Emulated processors of QEMU 7 can go on
 * with the old code where another processor has changed it, and hang both. FLOWFD_KVM=1
 * says that it does not matter: they take turns.
 */
static inline bool emulator_hangs(void)
{
	char machine[64] = "";
	FILE *f;

	if (!processor_is_emulated() || sysconf(_SC_NPROCESSORS_ONLN) == 1 ||
	    parameter("FLOWFD_KVM", 0))
		return false;
	f = fopen("/sys/class/dmi/id/product_version", "r");
	if (!f)
		return false;
	if (!fgets(machine, sizeof(machine), f))
		*machine = '\0';
	fclose(f);
	return strstr(machine, "-7.");
}

/* -1: there is no KVM. */
static inline int kvm_open(void)
{
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0 && system("modprobe -q kvm_amd || modprobe -q kvm_intel") == 0)
		fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	return fd;
}

#endif /* __x86_64__ */

#endif /* KVM_GUEST_H */
