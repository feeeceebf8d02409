#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make one HTML page with tables and plots from the JSON of flowfd-bench.

Installed as flowfd-bench-report; flowfd-bench --html runs it. Parts that the JSON does
not have (benchmarks that did not run, flowfd without its module) are left out.
"""

import argparse
import sys

from page import page
from result import Broken, load


def main():
    parser = argparse.ArgumentParser(
        prog="flowfd-bench-report",
        description="Make one HTML page from the JSON of flowfd-bench.",
    )
    parser.add_argument(
        "result", help="file from flowfd-bench --json; -: standard input"
    )
    parser.add_argument("-o", "--output", required=True, help="page to write")
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        metavar="RESULT",
        help="show the figures of another machine beside; may be repeated",
    )
    arguments = parser.parse_args()
    subject = arguments.result
    try:
        result = load(subject)
        beside = []
        for subject in arguments.beside:
            beside.append(load(subject))
        text = page(result, beside)
        subject = arguments.output
        with open(subject, "w", encoding="utf-8") as file:
            file.write(text)
    except (Broken, OSError) as error:
        why = getattr(error, "strerror", None) or error
        print(f"flowfd-bench-report: {subject}: {why}", file=sys.stderr)
        return 1
    except (KeyError, TypeError) as error:
        print(
            f"flowfd-bench-report: {subject}: not a result of flowfd-bench: "
            f"{error!r}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
