// SPDX-License-Identifier: MIT

// Package linux has the ABI of the kernel module, and nothing of Go. It is a package so that
// 'go mod vendor' copies the directory.
package linux
