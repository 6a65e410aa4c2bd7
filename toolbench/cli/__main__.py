"""Command `toolbench VERB …`, also `python -m toolbench.cli VERB …`."""

import argparse
import sys

from toolbench.cli.verbs import VERBS


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the verb. It leaves the other arguments to the verb's own parser."""
    lines = "\n".join(f"  {name:<12} {verb.help}" for name, verb in VERBS.items())
    parser = argparse.ArgumentParser(
        prog="toolbench",
        usage="toolbench VERB …",
        description="Tool-calling experiments with language models.",
        epilog=f"verbs:\n{lines}\n\n`toolbench VERB --help` lists the options of a verb.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=VERBS, help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def main() -> int:
    """Run the verb of the command line and return the exit code; without arguments, print the help and return 2."""
    parser = build_parser()
    if len(sys.argv) == 1:
        parser.print_help()
        return 2
    options = parser.parse_args()
    return VERBS[options.verb].run(options.arguments)


if __name__ == "__main__":
    sys.exit(main())
