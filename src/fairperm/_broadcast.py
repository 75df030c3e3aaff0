"""The sample on its way to Spark's workers: once to each of them, not with every task."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


@contextmanager
def sent_once(run: Callable[[int], T]) -> Iterator[Callable[[int], T]]:
    """Yield the function as joblib's active backend should get it, with all that it holds.

    Processes of one machine get it from joblib. Spark would get it anew with every block; Spark
    Connect, which has no broadcasts, still does.
    """
    context = _spark_context()
    if context is None:
        yield run
        return
    from pyspark import cloudpickle

    # a broadcast is pickled as usual, which the functions of a notebook cannot be
    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    sent = context.broadcast(dumps(run))
    try:
        yield _Sent(sent)
    finally:
        sent.destroy()


@dataclass(frozen=True, slots=True)
class _Sent(Generic[T]):
    """A function that is where it runs already."""

    broadcast: Any

    def __call__(self, block: int) -> T:
        from pyspark import cloudpickle

        run: Callable[[int], T] = cloudpickle.loads(self.broadcast.value)
        return run(block)


def _spark_context() -> Any:
    """Return the context of Spark if its backend is the active one."""
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    if not type(backend).__module__.startswith("joblibspark"):
        return None
    from pyspark import SparkContext
    from pyspark.sql.utils import is_remote

    return None if is_remote() else SparkContext.getOrCreate()
