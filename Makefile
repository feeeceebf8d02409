# SPDX-License-Identifier: GPL-2.0-only
# The front door: everything that people and CI call. The work is done in a root
# (a Debian system in the cache) and in a virtual machine; see selftests/vm.

# The kernel series to build for and to boot; selftests/vm/kernels has the list.
KERNEL ?= 6.1
# What 'make vm' runs.
RUN ?= bash

SUDO := $(if $(filter 0,$(shell id -u)),,sudo --preserve-env=FLOWFD_CACHE,HOME,DEB_BUILD_OPTIONS)
VM := $(SUDO) selftests/vm
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
# To the guest's shell as it was typed: a dollar sign there is not make's.
override RUN := $(value RUN)
export RUN

help:
	@echo 'flowfd $(VERSION): event file descriptors with flow control'
	@echo
	@echo '  make demo     see it work: tables, report, real programs'
	@echo '  make check    host tests and kernel selftests'
	@echo '  make vm       a shell in a virtual machine with the module loaded,'
	@echo "                or RUN='command' there; BOOT='options' of vm/boot"
	@echo '  make instructions'
	@echo '                the cost of each call, in guest instructions'
	@echo '  make prove    check the model of the ring, and that it finds errors'
	@echo '  make dkms     install and remove the module with DKMS, in a root'
	@echo '  make deb      the Debian packages, into build/KERNEL/deb'
	@echo '  make check-matrix'
	@echo '                the packages in fresh systems: install, boot, upgrade, purge'
	@echo '  make build    module, library, tools and tests, into build/KERNEL'
	@echo '  make lint     compiler warnings, sparse, checkpatch, shellcheck'
	@echo '  make clean    remove build/'
	@echo
	@echo '  KERNEL=$(KERNEL) (known: $(shell awk '/^[0-9]/ { print $$1 }' \
		selftests/vm/kernels))'
	@echo
	@echo 'Downloads and roots are kept in $${FLOWFD_CACHE:-~/.cache/flowfd}.'

build:
	@$(VM)/enter $(KERNEL) selftests/vm/build $(KERNEL)

vm: build
	@$(VM)/boot $(BOOT) $(KERNEL) "$$RUN"

check: build
	@$(SUDO) selftests/check $(KERNEL)

demo: build
	@$(SUDO) selftests/demo $(KERNEL)

instructions: build
	@$(VM)/boot --instructions --time 2700 $(KERNEL) \
		'$$FLOWFD_BUILD/user/flowfd-bench --instructions --check cost ring control wakeup memory'

# In the root of 7.2, for herd7 is not in Debian before forky.
prove:
	@$(VM)/enter --scratch 7.2 env FLOWFD_TEST_SECONDS=900 \
		selftests/run docs/model/prove docs/model/herd

dkms:
	@$(VM)/enter --scratch $(KERNEL) selftests/run selftests/dkms.sh

deb:
	@$(VM)/enter $(KERNEL) env DEB_BUILD_OPTIONS='$(DEB_BUILD_OPTIONS)' \
		selftests/vm/deb build/$(KERNEL)/deb
	@ls build/$(KERNEL)/deb/*.deb

# On all kernels; selftests/matrix/systems has the list.
check-matrix:
	@$(SUDO) selftests/matrix/run

lint:
	@$(VM)/enter $(KERNEL) selftests/lint

clean:
	$(SUDO) rm -rf build

.PHONY: help build vm check check-matrix demo instructions prove \
	dkms deb lint clean
