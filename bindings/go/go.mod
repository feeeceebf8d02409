// SPDX-License-Identifier: MIT
// Not published: a program says where it is by a replace directive.
module example.org/flowfd

go 1.19
