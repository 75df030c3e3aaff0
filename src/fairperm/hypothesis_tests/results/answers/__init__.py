"""The answer of every result: one sentence in words, which comes first wherever it is shown.

Every sentence is about the very numbers of its result. Gaps of rates are in percentage points, all
others in the metric's own unit. What is not significant is never called fair or equal.

A result whose sentence nothing else needs has it in its own ``answer``. Here are those of which
other results, audits or reports have parts. ``words`` has what all share: names of groups, values,
p-values, and whether chance explains what was found.
"""
