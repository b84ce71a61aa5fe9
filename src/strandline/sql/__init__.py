"""Everything that reads or writes SQL as a tree: parse, refuse, prove, rewrite. Pure; the only place that knows sqlglot."""
