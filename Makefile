# SPDX-License-Identifier: GPL-2.0-only
# The front door: everything that people and CI call. The work is done in a root
# (a Debian system in the cache) and in a virtual machine; see selftests/lab. The lab
# is not needed for 'make all', which builds on this system, nor by debian/rules.

# The kernel series to build for and to boot; selftests/lab/kernels has the list.
KERNEL ?= 6.1
# The debug kernels of 'make check-debug', unless it is told a KERNEL: a series and
# one of selftests/lab/debug/*.config.
DEBUG_KERNELS := 6.12-kasan 6.12-rt 6.12-kcsan 7.2-kasan 6.1-kasan
# The one for 'make fuzz'.
FUZZ_KERNEL := $(if $(filter file,$(origin KERNEL)),6.12-kasan,$(KERNEL))
# The one for 'make coverage'.
COVERAGE_KERNEL := 6.12-gcov
# What 'make vm' runs.
RUN ?= bash
# Where 'make all' builds, and the headers of the kernel that it builds for.
OUT ?= build/here
KDIR ?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build /lib/modules/*/build))

KEPT := HOME,DEB_BUILD_OPTIONS,FLOWFD_CACHE,FLOWFD_LOADS
# What needs root, and where that comes from; looked for when it is used.
SUDO = $(if $(filter 0,$(shell id -u)),,$(if $(shell command -v sudo),\
	sudo --preserve-env=$(KEPT),\
	$(error '$@' needs root rights, and there is no sudo: run make as root)))
LAB = $(SUDO) selftests/lab
# A line for each test program, unless it fails or V=1.
QUIET = $(if $(filter 1,$(V)),,selftests/lab/quiet build/log/$@-$(KERNEL))
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
# To the guest's shell as it was typed: a dollar sign there is not make's.
override RUN := $(value RUN)
export RUN
# To a script likewise: quotes there are not the shell's.
override KEY := $(value KEY)
override URI := $(value URI)
export KEY URI

help:
	@echo 'flowfd $(VERSION): event file descriptors with flow control'
	@echo
	@echo '  make demo     see it work: tables, report, real programs'
	@echo '  make check    host tests and kernel selftests (8 minutes on two processors)'
	@echo '  make check-lab'
	@echo "                tests of what builds and boots here"
	@echo '  make check-all'
	@echo '                everything, in hours; TURN=matrix for a part (.ci/run)'
	@echo '  make check-user'
	@echo '                user space alone: that of make check, tracepoints, benchmarks'
	@echo '  make check-debug'
	@echo '                make check on debug kernels: $(DEBUG_KERNELS)'
	@echo '  make fuzz     random calls, guided by what code they reach, on $(FUZZ_KERNEL);'
	@echo '                SECONDS=300 SEED=number'
	@echo '  make simulate random histories of the counter, on all processors; SECONDS=60'
	@echo '                SEED=number'
	@echo '  make soak     mixed load for an hour, and whether anything grows; SECONDS=3600'
	@echo '  make coverage which lines of the module the tests run'
	@echo '  make vm       a shell in a virtual machine with the module loaded,'
	@echo "                or RUN='command' there; BOOT='options' of lab/boot"
	@echo '  make servers  nginx and unicorn with and without a balance, as a table'
	@echo '  make instructions'
	@echo '                the cost of each call, in guest instructions'
	@echo '  make bench-native'
	@echo '                what needs no module, in nanoseconds on this processor'
	@echo '  make prove    check the models, and that they and the simulator find errors'
	@echo '  make dkms     install and remove the module with DKMS, in a root'
	@echo '  make livepatch, make check-livepatch'
	@echo '                build the livepatch for a stock kernel; test it there, or on'
	@echo "                that of a user's system: SYSTEM=6.1-upgrade"
	@echo '  make deb      the Debian packages, into build/KERNEL/deb'
	@echo '  make repository KEY=name URI=https://...'
	@echo '                an apt repository of all suites and architectures, signed with that'
	@echo '                secret key of gpg, in REPOSITORY=build/repository'
	@echo '  make check-repository'
	@echo '                both in a clone; install and upgrade from it, in fresh systems'
	@echo '  make release KEY=name'
	@echo '                archive, checksums and tag'
	@echo '  make release-check'
	@echo '                what a release must have set: maintainer, dates'
	@echo '  make check-matrix'
	@echo '                the packages in fresh systems: install, boot, upgrade, purge'
	@echo '  make check-builds'
	@echo '                compile the module for kernels that nothing else here runs, and user'
	@echo '                space with clang and musl'
	@echo '  make check-bindings'
	@echo '                the bindings of other languages, with and without the module'
	@echo '  make check-fleet'
	@echo '                the example of a rollout of the livepatch, on pretended hosts'
	@echo '  make build    module, library, tools and tests, into build/KERNEL'
	@echo '  make all      the same with the compiler of this system, for the kernel whose'
	@echo '                headers are in KDIR, into OUT=$(OUT)'
	@echo '  make lint     compiler warnings, sparse, checkpatch, shellcheck'
	@echo '  make analyze  Coccinelle on the module, gcc and clang analyzers on the rest'
	@echo '  make clean    remove build/'
	@echo
	@echo '  V=1           show all output of tests, which build/log keeps'
	@echo '  KERNEL=$(KERNEL) (known: $(shell awk '/^[0-9]/ { print $$1 }' \
		selftests/lab/kernels))'
	@echo
	@echo 'Downloads and roots are kept in $${FLOWFD_CACHE:-~/.cache/flowfd}.'

# One make at a time: other commands may be given in the same tree.
all:
	@mkdir -p '$(OUT)'
	@flock '$(OUT)/lock' $(MAKE) -s all-parts OUT='$(abspath $(OUT))'

# Of a module's sources there is a copy, as DKMS makes one: Kbuild writes beside them. The
# time of a copy is now: a source that changes during a build is newer than what was built.
all-parts:
	mkdir -p '$(OUT)/dkms'
	cp -ru dkms.conf module uapi '$(OUT)/dkms'
	$(MAKE) -C '$(OUT)/dkms/module' KDIR='$(KDIR)'
	cp -u '$(OUT)/dkms/module/flowfd.ko' '$(OUT)'
	$(MAKE) -C userspace O='$(OUT)/user'
	rm -rf '$(OUT)/usr'
	$(MAKE) -C userspace O='$(OUT)/user' DESTDIR='$(OUT)' PREFIX=/usr install-man
	$(MAKE) -C selftests O='$(OUT)/selftests'

# A debug kernel may want the module instrumented, and is slow.
build:
	@$(LAB)/enter $(KERNEL) make -s -j2 all OUT=build/$(KERNEL) WERROR=-Werror \
		$(if $(findstring -,$(KERNEL)),\
			KCOV_INSTRUMENT=y GCOV_PROFILE=y TEST_SECONDS=300) \
		$(if $(findstring -uml,$(KERNEL)),ARCH=um)

vm: build
	@$(LAB)/boot $(BOOT) $(KERNEL) "$$RUN"

check: build
	@$(SUDO) $(QUIET) selftests/lab/check $(KERNEL)

check-user: build
	@$(SUDO) $(QUIET) selftests/lab/check $(KERNEL) user

# The lab's own tests, where it or the packages change.
check-lab:
	@$(SUDO) $(QUIET) selftests/lab/enter $(KERNEL) env \
		FLOWFD_TEST_SECONDS=600 selftests/run selftests/lab/tests

# Hours; names of .ci/run in TURN run these, and what each commit needs.
check-all:
	@.ci/run $(or $(TURN),all)

# What needs real processors.
check-uml:
	@$(MAKE) -s build KERNEL=7.2-uml
	@$(SUDO) $(QUIET) selftests/lab/boot --time 1800 7.2-uml \
		'FLOWFD_TEST_SECONDS=600 selftests/lab/guest-check races'

check-debug:
	@bash -c '. selftests/lab/lib.sh; for kernel; do \
		stage "make check, kernel $$kernel" make check KERNEL="$$kernel"; \
		done; stages_end' check-debug \
		$(if $(filter file,$(origin KERNEL)),$(DEBUG_KERNELS),$(KERNEL))

fuzz: FOR := $(or $(SECONDS),300)
fuzz:
	@$(MAKE) -s build KERNEL=$(FUZZ_KERNEL)
	@$(LAB)/boot --time $$(($(FOR) + 300)) $(FUZZ_KERNEL) \
		'selftests/lab/guest-fuzz $(FOR) $(SEED)'

simulate: FOR := $(or $(SECONDS),60)
simulate:
	@$(LAB)/enter $(KERNEL) selftests/sim/simulate $(FOR) $(SEED)

soak: FOR := $(or $(SECONDS),3600)
soak: build
	@$(LAB)/boot --time $$(($(FOR) + 1800)) $(KERNEL) 'selftests/lab/guest-soak $(FOR)'

coverage:
	@$(MAKE) -s build KERNEL=$(COVERAGE_KERNEL)
	@$(LAB)/coverage $(COVERAGE_KERNEL)

demo: build
	@$(LAB)/demo $(KERNEL)

servers: build
	@$(LAB)/servers $(KERNEL)

instructions: build
	@$(LAB)/boot --instructions --time 2700 $(KERNEL) \
		'$$FLOWFD_BUILD/user/flowfd-bench --instructions --check'

bench-native:
	@$(LAB)/enter $(KERNEL) make -s -C userspace O=/flowfd/build/$(KERNEL)/user
	@$(LAB)/enter $(KERNEL) build/$(KERNEL)/user/flowfd-bench --fallback --rounds 15

# In the root of 7.2, for herd7 is not in Debian before forky.
prove:
	@$(SUDO) $(QUIET) selftests/lab/enter --scratch 7.2 env FLOWFD_TEST_SECONDS=1800 \
		selftests/run docs/model/prove docs/model/herd \
		livepatch/model/prove livepatch/model/epoll selftests/sim/faults

# For the stock kernel of the root.
livepatch:
	@version=$$($(LAB)/enter $(KERNEL) ls /lib/modules) && \
	$(SUDO) $(MAKE) -s -C livepatch module VERSION=$$version \
		O=../build/$(KERNEL)/livepatch

check-livepatch:
	@$(SUDO) $(QUIET) livepatch/tests/livepatch-check $(KERNEL) $(SYSTEM)

dkms:
	@$(SUDO) $(QUIET) selftests/lab/enter --scratch $(KERNEL) env \
		FLOWFD_TEST_SECONDS=600 selftests/run selftests/lab/dkms.sh

deb:
	@$(LAB)/enter $(KERNEL) env DEB_BUILD_OPTIONS='$(DEB_BUILD_OPTIONS)' \
		debian/package build/$(KERNEL)/deb
	@ls build/$(KERNEL)/deb/*.deb

# A maintainer keeps it outside of build/: reprepro adds to it.
REPOSITORY ?= build/repository

repository:
	@selftests/lab/make-repository '$(REPOSITORY)' "$$URI" "$$KEY" $(SUDO)

check-repository:
	@$(SUDO) $(QUIET) selftests/lab/check-repository $(SYSTEM)

release: release-check
	@selftests/lab/make-release '$(REPOSITORY)' "$$KEY"

release-check:
	@selftests/run selftests/lab/release-check

# selftests/lab/headers has the list.
check-builds:
	@$(SUDO) $(QUIET) selftests/lab/check-builds

# In a root, with Ansible for a while.
check-fleet:
	@$(SUDO) $(QUIET) selftests/lab/enter --scratch $(KERNEL) sh -ec 'apt-get -qq update; \
		apt-get -qqy install --no-install-recommends ansible-core > /dev/null; \
		FLOWFD_TEST_SECONDS=600 selftests/run livepatch/tests/rollout.sh'

# The root that has a compiler for Rust and for Go of these years.
BINDINGS_KERNEL := $(if $(filter file,$(origin KERNEL)),6.12,$(KERNEL))

check-bindings:
	@$(MAKE) -s build KERNEL=$(BINDINGS_KERNEL)
	@$(SUDO) $(QUIET) bindings/check $(BINDINGS_KERNEL)

# On all kernels; selftests/lab/systems has the list.
check-matrix:
	@$(SUDO) $(QUIET) selftests/lab/check-matrix $(SYSTEM)

lint:
	@$(LAB)/enter $(KERNEL) selftests/lab/lint

analyze:
	@$(LAB)/enter --scratch 6.12 selftests/lab/analyze

clean:
	$(SUDO) rm -rf build

.PHONY: help all all-parts build vm check check-all check-lab check-user check-uml check-debug check-matrix \
	check-bindings check-builds check-fleet demo servers instructions bench-native prove livepatch \
	check-livepatch dkms deb repository check-repository release release-check \
	lint clean fuzz simulate soak coverage analyze
