# SPDX-License-Identifier: MIT
from typing_extensions import Self, disjoint_base

HAS_MEMORY: int
HAS_CALLS: int
HAS_MAXIMUM: int
HAS_BUCKET: int
HAS_EDGES: int
HAS_FLOW: int
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
    ) -> None: ...
    @classmethod
    def from_fd(cls, fd: int, /) -> Self: ...
    def add(self, value: int = 1, /, *, timeout: float | None = None) -> None: ...
    def try_add(self, value: int = 1, /) -> bool: ...
    def take(self, *, timeout: float | None = None) -> int: ...
    def try_take(self) -> int | None: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def mapped(self) -> bool: ...
    @property
    def one_consumer(self) -> bool: ...
    @property
    def features(self) -> int: ...
