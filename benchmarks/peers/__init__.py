"""The same data and question through fairperm and through what people use instead.

questions → tools → measuring → page; ``bench_peers.py`` runs them, and
``tests/project/test_peers.py`` checks that all tools answer the same question.
"""
