# SPDX-License-Identifier: GPL-2.0-only
"""The JSON of flowfd-bench."""

import json
import sys

FORMAT_VERSION = 1


class Broken(Exception):
    """The input is not a result of flowfd-bench."""


def median(row, key):
    """The median of a figure, or None if it was not measured."""
    series = row and row.get(key)
    return series["median"] if series else None


def find(bench, **labels):
    """The row with these labels, or None."""
    for row in bench["rows"]:
        if all(row.get(key) == value for key, value in labels.items()):
            return row
    return None


def load(path):
    """Read and check the input."""
    try:
        if path == "-":
            result = json.load(sys.stdin)
        else:
            with open(path, encoding="utf-8") as file:
                result = json.load(file)
    except (OSError, UnicodeDecodeError) as error:
        raise Broken(getattr(error, "strerror", None) or error)
    except json.JSONDecodeError as error:
        raise Broken(f"not JSON: {error}")
    if not isinstance(result, dict) or result.get("format") != "flowfd-bench":
        raise Broken("not a result of flowfd-bench")
    if result.get("version") != FORMAT_VERSION:
        raise Broken(f"format version {result.get('version')} is not known")
    return result
