"""Summarizes JUnit files: names what failed, with the end of its output (or the beginning of a sanitizer's report; before that,
GoogleTest's first failed assertions), and what was skipped and why; then "N passed, N failed".

usage: summary.py [--also-failed N] FILE...
"""

import argparse
import sys
import xml.etree.ElementTree

LINES_OF_A_FAILURE = 20  # the rest is in the logs
LINES_OF_A_REPORT = 50  # both stacks of a race
ASSERTIONS_OF_A_FAILURE = 3  # a program's later tests push them out of its last lines
LINES_OF_AN_ASSERTION = 6
LETTERS_OF_A_LINE = 300  # template names fill pages
A_REPORT = ("WARNING: ThreadSanitizer", "ERROR: AddressSanitizer", "ERROR: LeakSanitizer", ": runtime error: ")


def failed_assertions(lines: list[str]) -> list[str]:
    """Returns the locations and texts of GoogleTest's first failed assertions."""
    starts = [at for at, line in enumerate(lines) if line.endswith(": Failure")]
    return [line for at in starts[:ASSERTIONS_OF_A_FAILURE] for line in lines[at : at + LINES_OF_AN_ASSERTION]]


def last_words(case: xml.etree.ElementTree.Element) -> str:
    """Returns what a failed test printed, from the start of a sanitizer's report or else its end: pytest puts it into the
    failure, ctest next to it. Indented; may be empty."""
    texts = [element.text for tag in ("failure", "error", "system-out") for element in case.findall(tag)]
    lines = next((text for text in texts if text and text.strip()), "").strip().splitlines()
    report = next((at for at, line in enumerate(lines) if any(mark in line for mark in A_REPORT)), None)
    if report is None:
        end = max(0, len(lines) - LINES_OF_A_FAILURE)
        lines = failed_assertions(lines[:end]) + lines[end:]
    else:
        lines = lines[report : report + LINES_OF_A_REPORT]
    return "".join(f"    {line[:LETTERS_OF_A_LINE]}\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--also-failed", type=int, default=0, help="failures outside of the files, such as a broken build")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    passed, failed = 0, arguments.also_failed
    if failed:
        print(f"  BROKEN   {failed} step(s) before the tests: see FAILED above")
    for file in arguments.files:
        suite = file.rsplit("/", 1)[-1].removesuffix(".xml")
        for case in xml.etree.ElementTree.parse(file).iter("testcase"):
            name = f"{suite}: {case.get('classname', '')} {case.get('name')}"
            skipped = case.find("skipped")
            reason = skipped.get("message", "") if skipped is not None else ""
            # ctest reports "notrun" both for a program that was not built and for one that asked to be skipped.
            not_built = case.get("status") == "notrun" and not reason.startswith("SKIP_")
            if not_built or case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                # ctest does not say that a test hung until its time was over.
                after = f"after {float(case.get('time')):.0f} s" if case.get("time") else ""
                print(f"  FAILED   {name} {reason or after}\n{last_words(case)}", end="")
            elif skipped is not None:
                print(f"  skipped  {name}: {reason}")
            else:
                passed += 1
    if passed == 0 and failed == 0:
        failed = 1
        print("  FAILED   no test ran")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
