# SPDX-License-Identifier: MIT
from collections.abc import Sequence
from typing import Literal

from typing_extensions import Self, disjoint_base

HAS_MEMORY: int
HAS_CALLS: int
HAS_MAXIMUM: int
HAS_BUCKET: int
HAS_FLOW: int
HAS_OVERFLOW: int
HAS_POLL: int
library_version: str

@disjoint_base
class Counter:
    def __init__(
        self,
        initial: int = 0,
        *,
        maximum: int | None = None,
        semaphore: bool = False,
        nonblock: bool = False,
        bucket: tuple[int, int] | None = None,
        optional_bucket: bool = False,
        one_consumer: bool = False,
        fallback: bool = True,
        overflow: Literal["wait", "fail", "saturate", "drop"] = "wait",
        no_poll: bool = False,
    ) -> None: ...
    @classmethod
    def from_descriptors(
        cls, fds: Sequence[int], /, *, one_consumer: bool = False
    ) -> Self: ...
    def descriptors(self) -> tuple[int, ...]: ...
    @classmethod
    def open_shared(cls, key: bytes, /) -> Self: ...
    def share(self) -> bytes: ...
    def add(self, value: int = 1, /, *, timeout: float | None = None) -> None: ...
    def try_add(self, value: int = 1, /) -> bool: ...
    def take(self, *, timeout: float | None = None) -> int: ...
    def try_take(self) -> int | None: ...
    def fileno(self) -> int: ...
    def _detach(self) -> int | None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def mapped(self) -> bool: ...
    @property
    def one_consumer(self) -> bool: ...
    @property
    def count(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def features(self) -> int: ...
