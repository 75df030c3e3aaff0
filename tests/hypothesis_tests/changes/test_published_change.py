"""The change of the AUC between two scores of the same patients, as R's pROC publishes it.

The data are those of pROC's examples, ``aSAH``: of 113 patients with an aneurysmal subarachnoid
hemorrhage (Turck et al., Intensive Care Medicine 36, 2010), whether the outcome was poor, and three
markers. Paths are of https://github.com/xrobin/pROC. By tests/testthat/helper-rocs.R, ``r.wfns`` is
``roc(aSAH$outcome, aSAH$wfns, quiet = TRUE)``, and ``r.s100b`` and ``r.ndka`` likewise.
"""

from __future__ import annotations

import numpy as np
import pytest

from fairperm import compare_models
from tests.engines.test_published_auc import AUC, LEVELS, PRINTED

POOR = np.array(
    [
        int(digit)
        for digit in "00001101001011001011101000000000100110110000000001100010"
        "001010011101101111000110100000010000000000001111110001000"
    ]
)
# aSAH$wfns, 100 * aSAH$s100b and 100 * aSAH$ndka, in the order of the patients
MARKERS = {
    "wfns": [
        *(1, 1, 1, 1, 3, 2, 5, 4, 1, 2, 5, 2, 5, 5, 1, 2, 5, 2, 2, 5, 2, 1, 1, 1, 1, 2, 1, 2, 1),
        *(1, 3, 4, 2, 1, 4, 5, 4, 1, 4, 2, 5, 5, 1, 1, 2, 4, 1, 1, 2, 5, 5, 2, 1, 2, 5, 1, 2, 2),
        *(2, 1, 5, 1, 1, 2, 5, 2, 1, 4, 5, 2, 4, 4, 1, 4, 1, 2, 1, 4, 2, 1, 2, 3, 2, 4, 2, 1, 4),
        *(5, 1, 1, 5, 4, 2, 2, 1, 1, 1, 3, 1, 2, 5, 2, 2, 5, 5, 5, 2, 4, 4, 5, 1, 1, 1),
    ],
    "s100b": [
        *(13, 14, 10, 4, 13, 10, 47, 16, 18, 10, 12, 10, 44, 71, 4, 8, 49, 4, 7, 33, 9, 9, 7, 11),
        *(7, 17, 7, 11, 13, 19, 5, 16, 41, 14, 34, 35, 48, 9, 96, 25, 50, 46, 16, 7, 43, 45, 11),
        *(8, 9, 86, 52, 8, 6, 13, 207, 10, 14, 15, 7, 6, 77, 5, 9, 30, 3, 9, 4, 23, 70, 9, 27, 71),
        *(8, 26, 8, 16, 9, 13, 10, 8, 11, 33, 11, 28, 7, 10, 32, 22, 7, 5, 24, 38, 10, 15, 8, 14),
        *(10, 7, 4, 19, 56, 14, 58, 32, 82, 74, 15, 47, 17, 44, 15, 50, 48),
    ],
    "ndka": [
        *(301, 854, 809, 1042, 1740, 1275, 600, 1320, 1554, 601, 1596, 1786, 518, 890, 1341, 2075),
        *(1160, 1611, 3237, 5482, 3241, 4994, 4034, 947, 629, 1253, 654, 630, 8030, 1280, 980, 981),
        *(985, 1821, 503, 1404, 2193, 802, 742, 838, 659, 963, 1312, 796, 1434, 4143, 763, 706),
        *(1259, 1356, 387, 944, 766, 1298, 41919, 2719, 2227, 995, 2122, 1173, 1040, 5883, 639),
        *(1109, 1222, 1367, 1721, 2263, 1290, 970, 2157, 823, 7257, 1554, 1051, 1060, 1457, 519),
        *(963, 461, 2148, 1730, 1271, 944, 1107, 1946, 1083, 537, 1197, 775, 983, 1055, 2849, 853),
        *(1257, 1290, 4683, 1168, 1267, 901, 957, 3406, 1172, 1426, 4761, 1167, 2458, 1033, 1387),
        *(1589, 2243, 679, 1345),
    ],
}
# tests/testthat/test-roc.test.R: $statistic, $p.value and $conf.int of roc.test(r.<first>,
# r.<second>), DeLong's test for two correlated ROC curves
PAIRED = {
    ("wfns", "s100b"): (
        2.20898359144091,
        0.0271757822291882,
        (0.0104061769564846, 0.174214419249478),
    ),
    ("wfns", "ndka"): (
        2.79777591868904,
        0.00514557970691098,
        (0.0634011709339876, 0.3600405634833566),
    ),
    ("ndka", "s100b"): (
        -1.39077002573558,
        0.164295175223054,
        (-0.2876917446341914, 0.0488706064228094),
    ),
}


@pytest.mark.parametrize("marker", MARKERS)
def test_the_patients_are_those_of_the_published_curves(marker: str) -> None:
    _, level = np.unique(MARKERS[marker], return_inverse=True)
    for poor, counts in enumerate(LEVELS[marker]):
        assert np.bincount(level[poor == POOR], minlength=len(counts)).tolist() == counts


@pytest.mark.filterwarnings("ignore:.* shows? how the change")
@pytest.mark.parametrize("markers", PAIRED)
def test_a_groups_change_is_delongs_paired_test(markers: tuple[str, str]) -> None:
    """Both groups are the same patients; each has the change of its own."""
    first, second = (np.tile(MARKERS[one], 2) for one in markers)
    result = compare_models(
        np.tile(POOR, 2),
        y_score=second,
        y_score_new=first,
        sensitive_features=np.repeat(["a", "b"], len(POOR)),
        metric="roc_auc",
        n_resamples=9,
        rng=1,
    )
    assert result.difference == 0
    z, p, interval = PAIRED[markers]
    for change in result.group_changes.values():
        assert (change.new, change.old) == pytest.approx([AUC[one] for one in markers], rel=PRINTED)
        assert change.change / change.standard_error == pytest.approx(z, rel=1e-13)
        assert change.pvalue == pytest.approx(p, rel=1e-13)
        reach = 1.959963984540054 * change.standard_error
        ends = change.change - reach, change.change + reach
        assert ends == pytest.approx(interval, rel=1e-12)
