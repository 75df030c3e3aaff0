"""The AUC of bootstrap samples, compiled by Numba, so it is imported only when it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.kernels.kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def resampled_auc(positive: NDArray[np.bool_], rows: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the AUC of every sample (axis 0) of rows that stand in the order of their scores.

    No two rows have the same score. NaN where a sample has rows of one label alone.
    """
    found = np.empty(len(rows))
    times = np.empty(len(positive), np.int64)
    for sample in range(len(rows)):
        times[:] = 0
        for row in rows[sample]:
            times[row] += 1
        positives = negatives = pairs = 0
        for row in range(len(positive)):
            if positive[row]:
                positives += times[row]
                pairs += times[row] * negatives
            else:
                negatives += times[row]
        found[sample] = pairs / (positives * negatives)
    return found
