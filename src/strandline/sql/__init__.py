"""Everything that reads or writes SQL as a tree: parse, refuse, prove, rewrite.

Pure, and the only package that imports sqlglot.
"""
