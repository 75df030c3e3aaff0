"""The answer of every result: one sentence in words, which comes first wherever it is shown.

Every sentence is about the very numbers of its result. Gaps of rates are in percentage points, all
others in the metric's own unit. What is not significant is never called fair or equal.

A new kind of result has one file here, with a function from the result to its sentence, and an
``answer`` property that calls it. ``words`` has the parts that all share: names of groups, values,
p-values, and whether chance explains what was found.
"""
