# SPDX-License-Identifier: GPL-2.0-only
"""Runs the tests of a file with pytest and prints TAP, one line for each test.

The file is called as FILE BUILD [PYTEST-ARGUMENT...], where BUILD is the directory with
the programs to test, and closes with: if __name__ == "__main__": sys.exit(tap.run())
"""

import os
import sys
import time

import pytest

BUILD = os.path.abspath(sys.argv[1])


class Tap:
    """A pytest plugin that reports in the place of pytest's own reporter."""

    count = 0
    wrong = skipped = ""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config):
        config.pluginmanager.unregister(name="terminalreporter")

    def pytest_collectreport(self, report):
        if report.failed:
            comment(report.longreprtext)

    def pytest_collection_finish(self, session):
        print(f"1..{len(session.items)}", flush=True)

    def pytest_runtest_logreport(self, report):
        """A test has three reports: setup, call unless setup failed, teardown."""
        if report.failed:
            self.wrong += report.longreprtext
        elif report.skipped:
            self.skipped = f" # SKIP {report.longrepr[2]}"
        if report.when == "teardown":
            self.count += 1
            print("not ok" if self.wrong else "ok", self.count, "-",
                  report.nodeid.partition("::")[2] + self.skipped)
            comment(self.wrong)
            self.wrong = self.skipped = ""


def comment(text):
    print("".join(f"# {line}\n" for line in text.splitlines()), end="", flush=True)


def settles(get, wanted, seconds):
    """Waits until get() returns @wanted; says whether it did so in time."""
    end = time.monotonic() + seconds
    while (got := get()) != wanted and time.monotonic() < end:
        time.sleep(0.01)
    if got != wanted:
        print(f"# got:    {got!r}\n# wanted: {wanted!r}")
    return got == wanted


def run():
    """Returns pytest's exit status. What tests print is shown as it comes."""
    return pytest.main([sys.argv[0], "--capture=no", "-p", "no:cacheprovider",
                        *sys.argv[2:]], plugins=[Tap()])
