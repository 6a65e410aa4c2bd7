"""Conversion of agent frameworks' tools from and to Python tools.

The module of a framework imports the framework, which is no dependency of Toolbench: install it first.
"""
