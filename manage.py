#!/usr/bin/env python3
"""Django's command line for Toolbench."""

from toolbench.manage import main

if __name__ == "__main__":
    main()
