"""Certificates: what was proved of a kernel, in a form that a second, small program checks.

A certificate is one SMT-LIB file for each obligation: its premises and negated goal in non-linear integer
arithmetic, and the instances of lemmas that its proof uses. The checker reads it, states each instance itself
(`schemas`), replaces products by fresh constants (`linear`) and asks cvc5. It shares no code with the prover.
"""
